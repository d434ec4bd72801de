//! `foxy disk-helper`: carries out another foxy's disk work, as Squid's diskd. Not for people: its
//! standard input is a socket, its standard output the lock of the folder it works in.

use crate::failure::Failure;
use clap::{ArgMatches, Command};
use foxy_device::DirectIo;
use foxy_device::helper::serve;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What it is called.
pub const NAME: &str = "disk-helper";

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
