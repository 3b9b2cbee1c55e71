//! By what costs are added up.

use std::{fmt, str::FromStr, sync::Arc};

/// One thing by which costs are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dimension {
    /// The pipeline's name.
    Pipeline,
    /// One execution of a pipeline.
    Run,
    /// The task's name.
    Task,
    /// The tool's name.
    Tool,
    /// The workload: a container, a unit, a session.
    Workload,
    /// The machine.
    Instance,
    /// Who started the machine.
    User,
    /// The team or cost centre.
    Team,
    /// The account, or project.
    Account,
    /// The provider.
    Provider,
    /// The region, or zone.
    Region,
    /// The day, by UTC.
    Day,
}

impl Dimension {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Pipeline,
        Self::Run,
        Self::Task,
        Self::Tool,
        Self::Workload,
        Self::Instance,
        Self::User,
        Self::Team,
        Self::Account,
        Self::Provider,
        Self::Region,
        Self::Day,
    ];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pipeline => "pipeline",
            Self::Run => "run",
            Self::Task => "task",
            Self::Tool => "tool",
            Self::Workload => "workload",
            Self::Instance => "instance",
            Self::User => "user",
            Self::Team => "team",
            Self::Account => "account",
            Self::Provider => "provider",
            Self::Region => "region",
            Self::Day => "day",
        }
    }

    /// Whether it tells things on one machine apart that use it.
    #[must_use]
    pub const fn is_of_subjects(self) -> bool {
        matches!(self, Self::Pipeline | Self::Run | Self::Task | Self::Tool | Self::Workload)
    }

    /// Its value for what a subject on a machine used in an hour; of what no subject used, none.
    #[must_use]
    pub fn value(self, place: &Place, subject: Option<&Subject>, day: &Value) -> Value {
        match self {
            Self::Pipeline => subject?.pipeline.clone(),
            Self::Run => subject?.run.clone(),
            Self::Task => subject?.task.clone(),
            Self::Tool => subject?.tool.clone(),
            Self::Workload => subject?.workload.clone(),
            Self::Instance => place.instance.clone(),
            Self::User => place.user.clone(),
            Self::Team => place.team.clone(),
            Self::Account => place.account.clone(),
            Self::Provider => place.provider.clone(),
            Self::Region => place.region.clone(),
            Self::Day => day.clone(),
        }
    }
}

/// What a dimension tells; none is *not known*.
pub type Value = Option<Arc<str>>;

/// What is known of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its key.
    pub instance: Value,
    /// Who started it.
    pub user: Value,
    /// The team or cost centre.
    pub team: Value,
    /// The account, or project.
    pub account: Value,
    /// The provider.
    pub provider: Value,
    /// The region, or zone.
    pub region: Value,
}

/// What uses a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Whether it would run on a machine that nobody uses.
    pub is_system: bool,
    /// The pipeline's name.
    pub pipeline: Value,
    /// The run.
    pub run: Value,
    /// The task's name.
    pub task: Value,
    /// The tool's name.
    pub tool: Value,
    /// The workload.
    pub workload: Value,
}

/// One or two dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct By(Vec<Dimension>);

/// A text that names no dimensions to add up by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotBy {
    /// No such dimension.
    Unknown(String),
    /// None, more than two, or one twice.
    Number,
    /// Workloads and runs are two views of the same work, of which it is not kept how they meet.
    TwoViews(Dimension),
}

impl fmt::Display for NotBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = || Dimension::ALL.map(Dimension::as_str).join(", ");
        match self {
            Self::Unknown(word) => write!(f, "`{}` is no dimension; there are: {}", word.escape_debug(), known()),
            Self::Number => write!(f, "one or two dimensions, each once, such as `tool,day`; there are: {}", known()),
            Self::TwoViews(other) => write!(
                f,
                "`workload` and `{}` cannot be told together: they are two views of the same work",
                other.as_str()
            ),
        }
    }
}

impl std::error::Error for NotBy {}

impl By {
    /// Which these are.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.0
    }
}

/// `tool`, or `tool,day`.
impl FromStr for By {
    type Err = NotBy;

    fn from_str(text: &str) -> Result<Self, NotBy> {
        let dimension = |word: &str| {
            let word = word.trim();
            let found = Dimension::ALL.into_iter().find(|dimension| dimension.as_str() == word);
            found.ok_or_else(|| NotBy::Unknown(word.chars().take(40).collect()))
        };
        let all: Vec<Dimension> = text.split(',').map(dimension).collect::<Result<_, _>>()?;
        if all.len() > 2 || all.first() == all.get(1) {
            return Err(NotBy::Number);
        }
        let other = all.iter().find(|one| one.is_of_subjects() && **one != Dimension::Workload);
        match other.filter(|_| all.contains(&Dimension::Workload)) {
            Some(other) => Err(NotBy::TwoViews(*other)),
            None => Ok(Self(all)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_two_dimensions_are_named() {
        let by = |text: &str| text.parse::<By>().map(|by| by.0);
        assert_eq!(by("tool"), Ok(vec![Dimension::Tool]));
        assert_eq!(by("day, tool"), Ok(vec![Dimension::Day, Dimension::Tool]));
        assert_eq!(by("tool,tool"), Err(NotBy::Number));
        assert_eq!(by("tool,day,region"), Err(NotBy::Number));
        assert_eq!(by(""), Err(NotBy::Unknown(String::new())));
        assert_eq!(by("workload,task"), Err(NotBy::TwoViews(Dimension::Task)));
        assert_eq!(by("workload,day").map(|by| by.len()), Ok(2));
        for dimension in Dimension::ALL {
            assert_eq!(by(dimension.as_str()), Ok(vec![dimension]));
        }
        assert!(NotBy::Unknown("a\u{1b}".into()).to_string().starts_with("`a\\u{1b}` is no dimension"));
    }
}
