//! `foxy disk-helper`: carries out the disk work of another foxy process, as Squid's diskd does.
//! Standard input is a socket; standard output holds the folder's lock.

use crate::failure::Failure;
use clap::{ArgMatches, Command};
use foxy_device::helper::{Ending, serve};
use foxy_device::{DirectIo, Helper, Root};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Threads of a device for aufs: Squid starts as many for each directory.
pub const AUFS_THREADS: usize = 16;

/// This program, even when another file has taken its place: the two processes talk without a
/// version.
const OWN_PROGRAM: &str = "/proc/self/exe";

const NAME: &str = "disk-helper";

/// The hidden command.
pub fn command() -> Command {
    Command::new(NAME)
        .about("Perform the disk operations of another foxy process, which starts this command")
        .hide(true)
}

/// Serves in the current folder until the other process ends.
pub fn run(_: &ArgMatches) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("disk-helper: {error}"));
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    serve(UnixStream::from(socket), Path::new("."), DirectIo::Off).map_err(failed)
}

/// Starts a helper process. It holds the folder's lock while it runs, and gets no signal meant for
/// foxy.
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
            // Waits so that no zombie stays.
            let _ = child.wait();
        }))
    })
}
