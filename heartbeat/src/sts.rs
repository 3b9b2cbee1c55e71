//! The one request to AWS's Security Token Service by which a role's session says who it is. The node signs it, the sweeper sends it:
//! both build it from here, so that nothing but signature, time and session token travels.

/// The request's body.
pub const BODY: &str = "Action=GetCallerIdentity&Version=2011-06-15";
/// Its content type.
pub const CONTENT_TYPE: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// The header that holds the sweeper's address: a request that was signed for another one is of no use here.
pub const AUDIENCE_HEADER: &str = "x-cloud-sweeper-audience";
/// The header that holds the challenge of this join.
pub const NONCE_HEADER: &str = "x-cloud-sweeper-nonce";
/// All headers that must be signed, and no other.
pub const SIGNED_HEADERS: &str =
    "content-type;host;x-amz-date;x-amz-security-token;x-cloud-sweeper-audience;x-cloud-sweeper-nonce";

/// The service's host in a region.
#[must_use]
pub fn host(region: &str) -> String {
    let domain = match region.split('-').next() {
        Some("cn") => "amazonaws.com.cn",
        Some("eusc") => "amazonaws.eu",
        _ => "amazonaws.com",
    };
    format!("sts.{region}.{domain}")
}

/// All headers in the order in which they are signed.
#[must_use]
pub fn headers<'a>(
    host: &'a str,
    time: &'a str,
    session_token: &'a str,
    audience: &'a str,
    nonce: &'a str,
) -> [(&'static str, &'a str); 6] {
    [
        ("content-type", CONTENT_TYPE),
        ("host", host),
        ("x-amz-date", time),
        ("x-amz-security-token", session_token),
        (AUDIENCE_HEADER, audience),
        (NONCE_HEADER, nonce),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_headers_are_signed_in_order_and_hosts_are_those_of_the_regions() {
        let names = headers("h", "t", "s", "a", "n").map(|(name, _)| name);
        assert_eq!(names.join(";"), SIGNED_HEADERS);
        assert!(names.is_sorted());
        assert_eq!(host("eu-central-1"), "sts.eu-central-1.amazonaws.com");
        assert_eq!(host("cn-north-1"), "sts.cn-north-1.amazonaws.com.cn");
    }
}
