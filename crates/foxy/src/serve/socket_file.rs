//! Opens Unix sockets. The file of a Unix socket remains when its process is killed. So foxy
//! replaces files to which no process listens, and removes its own files when it stops.

use rustix::fs::{Access, Mode, access};
use rustix::process::umask;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Mode bits that a new socket file must not have: only its owner and group may connect.
const WITHHELD: Mode = Mode::from_raw_mode(0o117);

/// The file of an open Unix socket. Dropping this value removes the file, unless another file has
/// replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // If the removal fails, the next start finds a dead socket and removes it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl SocketFile {
    /// Takes over the file of a socket that already listens at `path`.
    pub fn adopt(path: &Path) -> std::io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }

    /// Leaves the file to the process that uses it now: Drop does not remove the file.
    pub fn leave(mut self) {
        self.identity = (0, 0);
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Listens at `path`. Replaces the file of a socket to which no process listens, but no other file.
pub fn open(path: &Path) -> std::io::Result<(UnixListener, SocketFile)> {
    if has_dead_socket(path)? {
        std::fs::remove_file(path)?;
    }
    let usual = umask(WITHHELD);
    let listener = UnixListener::bind(path);
    umask(usual);
    let file = SocketFile::adopt(path)?;
    Ok((listener?, file))
}

/// Tries whether foxy can listen at `path`. Changes nothing.
pub fn try_out(path: &Path) -> std::io::Result<()> {
    has_dead_socket(path)?;
    access(path.parent().unwrap_or(path), Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}

/// Returns true if `path` is a socket to which no process listens, and false if `path` does not
/// exist. Everything else is an error.
fn has_dead_socket(path: &Path) -> std::io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(Error::other("the file there is no socket, and foxy leaves it alone"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_dead_socket_is_replaced_and_the_file_ends_with_the_listener() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        std::fs::write(&path, "diary").expect("written");
        let refused = open(&path).expect_err("no socket").to_string();
        assert!(refused.contains("foxy leaves it alone"), "{refused}");
        std::fs::remove_file(&path).expect("removed");
        drop(UnixListener::bind(&path).expect("bound"));
        let (listener, file) = open(&path).expect("the socket is dead");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        assert_eq!(open(&path).expect_err("in use").kind(), ErrorKind::AddrInUse);
        drop((listener, file));
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_took_the_sockets_name_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let first = open(&path).expect("bound");
        let other = UnixListener::bind(folder.path().join("t")).expect("bound");
        std::fs::rename(folder.path().join("t"), &path).expect("renamed");
        drop((first, other));
        assert!(path.exists());
    }
}
