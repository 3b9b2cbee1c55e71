//! A runtime's socket.

use super::report::Failure;
use std::{io, path::Path};
use tokio::net::UnixStream;

/// Connects to whoever listens there.
///
/// # Errors
/// If nobody does, or this user may not.
pub(super) async fn connect(socket: &Path) -> Result<UnixStream, Failure> {
    UnixStream::connect(socket).await.map_err(|error| {
        let why = format!("{}: {error}", socket.display());
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Failure::Absent(why),
            io::ErrorKind::PermissionDenied => Failure::Denied(why),
            _ => Failure::Broken(why),
        }
    })
}
