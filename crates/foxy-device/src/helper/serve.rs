//! The helper's side: takes operations from the socket, carries each out, answers it. Nothing runs
//! beside that.

use super::wire::{self, Answer};
use crate::blocking::Blocking;
use crate::io::{Device, IoDone, IoOp};
use crate::threads::DirectIo;
use foxy_base::Instant;
use rustix::fs::{Mode, OFlags, open};
use std::io::{BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Serves the operations that come over `socket`, on the files in `folder`, until the other end is
/// closed.
///
/// # Errors
/// When the folder cannot be opened, or the other end does not keep to the protocol.
pub fn serve(socket: UnixStream, folder: &Path, direct: DirectIo) -> std::io::Result<()> {
    let directory = open(folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut device = Blocking::on(std::sync::Arc::new(directory), direct);
    let mut answers = socket.try_clone()?;
    let mut operations = BufReader::new(socket);
    let mut done: Vec<IoDone> = Vec::new();
    loop {
        let reads;
        match wire::read_operation(&mut operations) {
            Ok((id, op)) => {
                reads = matches!(op, IoOp::Read { .. });
                device.submit(id, op, Instant::ZERO);
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        device.reap(Instant::ZERO, &mut done);
        for finished in done.drain(..) {
            if answers.write_all(&wire::answer(&Answer::of(finished, reads))).is_err() {
                return Ok(());
            }
        }
    }
}
