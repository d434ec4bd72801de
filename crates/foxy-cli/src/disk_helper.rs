//! `foxy disk-helper`: carries out another foxy's disk work, as Squid's diskd. Not for people: its
//! standard input is a socket, its standard output the lock of the folder it works in.

use crate::failure::Failure;
use clap::{ArgMatches, Command};
use foxy_device::helper::{Ending, serve};
use foxy_device::{DirectIo, Helper, Root};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Threads for a scheme that is meant for them, as Squid starts for each directory.
pub const AUFS_THREADS: usize = 16;

/// The program of this very process, also when another has taken its place on disk: the two talk
/// without a version.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// What it is called.
const NAME: &str = "disk-helper";

/// It has no arguments.
pub fn command() -> Command {
    Command::new(NAME).about("Carry out another foxy's disk work; started by it").hide(true)
}

/// Runs it, in the folder it was started in, until the other foxy ends.
pub fn run(_: &ArgMatches) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("disk-helper: {error}"));
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    serve(UnixStream::from(socket), Path::new("."), DirectIo::Off).map_err(failed)
}

/// A helper in a process of its own. It holds the folder's lock as long as it runs, and takes no
/// signal meant for foxy.
///
/// # Errors
/// When it cannot be started.
pub fn helper(root: &Root, block_at: usize) -> std::io::Result<Helper> {
    let (folder, lock) = (root.path().to_owned(), root.share_lock()?);
    Helper::new(block_at, move |socket: UnixStream| -> std::io::Result<Ending> {
        let mut child = std::process::Command::new(OWN_PROGRAM)
            .arg0("foxy")
            .arg(NAME)
            .current_dir(&folder)
            .stdin(OwnedFd::from(socket))
            .stdout(lock.try_clone()?)
            .process_group(0)
            .spawn()?;
        Ok(Box::new(move || {
            // It has nothing more to say; waiting only keeps it from staying as a zombie.
            let _ = child.wait();
        }))
    })
}
