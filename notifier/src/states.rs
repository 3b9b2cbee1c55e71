//! What is said of the state that a finding is about.

/// What is said of a state while it lasts, and what it was once it is over.
pub(crate) fn words(state: &str) -> (&'static str, &'static str) {
    match state {
        "unknown" => ("has been a blind spot", "wasteful"),
        "idle" => ("has been idle", "idle"),
        // As seen from outside.
        "quiet" => ("has looked unused from outside", "seemingly unused"),
        "unused GPU" => ("has used none of its GPUs", "without use for its GPUs"),
        "barely used" => ("has been barely used", "barely used"),
        "resting" => ("has rested in the same hours of each week", "resting in the same hours of each week"),
        "orphaned" => ("has outlived its volume, and is needed by no image,", "without its volume"),
        "unattached" => ("has been attached to nothing", "attached to nothing"),
        "unused" => ("has been tied to nothing", "tied to nothing"),
        "stopped" => ("has been stopped", "stopped"),
        "silent" => ("has run with a silent agent", "running with a silent agent"),
        "unregistered" => ("has run without joining its cluster", "outside its cluster"),
        "wholly idle" => ("has had nothing but idle machines", "wholly idle"),
        "abandoned" => ("has run without its compute environment", "without its compute environment"),
        "relaunching" => ("has started machines that nobody used", "starting machines that nobody uses"),
        "relaunching template" => ("has been used for machines that nobody used", "used for machines that nobody uses"),
        "blocked" => ("has been blocked", "blocked"),
        "held" => ("has kept machines ready for no job", "ready for no job"),
        "lost" => ("has been without its containers", "without its containers"),
        "starting" => ("has been starting", "starting"),
        "straggling" => ("has run behind all others of its array", "behind all others of its array"),
        "headless" => ("has outlived the job that submitted it", "without its head"),
        "stuck" => ("has been stuck", "stuck"),
        "spinning" => ("has done nothing but compute", "computing alone"),
        "failing" => ("has had nothing but failed tasks", "failing"),
        "left behind" => ("has outlived its run", "left behind"),
        "waiting" => ("has been waiting", "waiting"),
        "active" => ("has been active", "active"),
        _ => ("has been judged wasteful", "wasteful"),
    }
}
