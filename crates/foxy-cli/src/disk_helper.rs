//! `foxy disk-helper`: performs disk operations for another foxy process, as Squid's diskd does.
//! The helper's standard input is a socket to the foxy process. Its standard output is the locked
//! lock file of the store's folder, so the folder stays locked as long as the helper runs.

use crate::failure::Failure;
use clap::{ArgMatches, Command};
use foxy_device::helper::{Ending, serve};
use foxy_device::{DirectIo, Helper, Root};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Number of disk threads of a store with the scheme `aufs`. Squid starts 16 threads for each cache
/// directory.
pub const AUFS_THREADS: usize = 16;

/// Path through which Linux starts the same program as this process, even after an upgrade has
/// replaced the program's file. The helper must be the same program, because the protocol between
/// the two processes has no version number.
const OWN_PROGRAM: &str = "/proc/self/exe";

const NAME: &str = "disk-helper";

/// Defines the hidden command `disk-helper`.
pub fn command() -> Command {
    Command::new(NAME)
        .about("Perform the disk operations of another foxy process, which starts this command")
        .hide(true)
}

/// Performs disk operations in the current folder until the other foxy process closes the socket.
pub fn run(_: &ArgMatches) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("disk-helper: {error}"));
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    serve(UnixStream::from(socket), Path::new("."), DirectIo::Off).map_err(failed)
}

/// Starts a helper process for the store folder `root`. The helper holds the folder's lock while it
/// runs. It has its own process group, so signals from the terminal do not reach it.
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
            // Waits for the helper process, so that no zombie process remains.
            let _ = child.wait();
        }))
    })
}
