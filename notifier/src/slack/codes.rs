//! What each code means with which Slack refuses a message: <https://docs.slack.dev/reference/methods/chat.postMessage#errors>. Pure.
//!
//! A code is of the app (no message of ours is taken anywhere), of the channel, of the thread, of this one message, or passes. One that is not known here is none of these.

use slack_morphism::errors::SlackClientError;

/// Codes by which no update of this message will ever succeed: <https://docs.slack.dev/reference/methods/chat.update#errors>.
pub(super) fn is_gone(code: &str) -> bool {
    matches!(code, "message_not_found" | "cant_update_message" | "edit_window_closed")
}

/// Whether a refusal is of the channel and not of the message: <https://docs.slack.dev/reference/methods/chat.postMessage#errors>.
pub(super) fn is_of_the_channel(error: &SlackClientError) -> bool {
    let SlackClientError::ApiError(api) = error else { return false };
    matches!(
        api.code.as_str(),
        "access_denied"
            | "channel_not_found"
            | "channel_is_limited_access"
            | "not_in_channel"
            | "is_archived"
            | "is_inactive"
            | "restricted_action"
            | "restricted_action_read_only_channel"
            | "restricted_action_thread_only_channel"
            | "team_access_not_granted"
            | "team_not_found"
    )
}

/// Whether a refusal may be of the thread and not of the message: its own codes, and those that are not known here.
pub(super) fn may_be_the_threads(error: &SlackClientError) -> bool {
    let SlackClientError::ApiError(api) = error else { return false };
    matches!(
        api.code.as_str(),
        "restricted_action_non_threadable_channel" | "restricted_action_thread_locked" | "cannot_reply_to_message"
    ) || is_unclear(error)
}

/// Whether it is a refusal of which nothing is known here: neither that it passes, nor what heals it.
pub(super) fn is_unclear(error: &SlackClientError) -> bool {
    let SlackClientError::ApiError(api) = error else { return false };
    remedy(&api.code).is_none() && !is_passing(&api.code)
}

/// Codes that say nothing of the message: another attempt is as good as this one.
fn is_passing(code: &str) -> bool {
    matches!(
        code,
        "internal_error"
            | "fatal_error"
            | "service_unavailable"
            | "request_timeout"
            | "ratelimited"
            | "rate_limited"
            | "message_limit_exceeded"
            | "team_added_to_org"
            | "org_login_required"
    )
}

/// Codes that are about this one message and no other.
pub(super) fn is_unfit(code: &str) -> bool {
    matches!(
        code,
        "invalid_blocks"
            | "invalid_blocks_format"
            | "msg_too_long"
            | "msg_blocks_too_long"
            | "no_text"
            | "markdown_text_conflict"
            | "metadata_too_large"
            | "invalid_metadata_format"
            | "invalid_arguments"
            | "invalid_arg_name"
            | "invalid_json"
            | "json_not_object"
    )
}

/// What to change, for the codes of <https://docs.slack.dev/reference/methods/chat.postMessage#errors>
/// that no waiting heals.
pub(super) fn remedy(code: &str) -> Option<&'static str> {
    Some(match code {
        "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired" => {
            "Reinstall the Slack app and set its new bot token"
        }
        "accesslimited" | "two_factor_setup_required" => {
            "A workspace administrator must let the app in from this network and as it is"
        }
        "missing_scope" | "no_permission" | "not_allowed_token_type" => {
            "Give the Slack app the bot scope `chat:write` (and `chat:write.public` for channels it is not in), then reinstall it"
        }
        "channel_not_found" | "channel_is_limited_access" => {
            "Name an existing channel, best by its id; to a private channel the app must be invited"
        }
        "not_in_channel" => "Invite the app to the channel (`/invite @app`)",
        "is_archived" | "is_inactive" => "Unarchive the channel or name another one",
        "restricted_action"
        | "restricted_action_read_only_channel"
        | "access_denied"
        | "ekm_access_denied"
        | "team_access_not_granted"
        | "team_not_found"
        | "enterprise_is_restricted"
        | "restricted_action_non_threadable_channel"
        | "restricted_action_thread_only_channel"
        | "restricted_action_thread_locked" => {
            "A workspace administrator must allow the app to post there, or name another channel"
        }
        code if is_unfit(code) => "This is a fault of Cloud Sweeper; please report it with this text",
        "unknown_method" | "method_deprecated" | "deprecated_endpoint" => "Check the configured Slack API address",
        _ => return None,
    })
}
