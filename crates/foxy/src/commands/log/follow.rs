//! `foxy log -f`: prints transactions as they end, until the user stops the command.

use super::sources::{LogSource, unreadable};
use crate::failure::Failure;
use foxy_base::clock;
use foxy_log::lines;
use foxy_log::query::Query;
use foxy_log::ring::reader::{Follower, Ring};
use foxy_log::transaction::Transaction;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// Interval at which the command looks for new transactions.
const INTERVAL: Duration = Duration::from_millis(100);

/// Passes each new transaction that meets the query to `print`.
pub fn follow(
    source: &LogSource,
    query: &Query,
    print: impl Fn(&Transaction<'_>),
) -> Result<(), Failure> {
    let take = |transaction: &Transaction<'_>| {
        if query.matches(transaction) {
            print(transaction);
        }
    };
    let take_line = |line: &[u8]| lines::parse(line).iter().for_each(&take);
    match source {
        LogSource::Ring(path, ring) => {
            follow_ring(ring, &take).map_err(|error| unreadable(path, &error))
        }
        LogSource::Lines(path) => {
            follow_lines(path, &take_line).map_err(|error| unreadable(path, &error))
        }
        LogSource::StandardInput => lines::each(io::stdin().lock(), take_line)
            .map_err(|error| unreadable(Path::new("-"), &error)),
    }
}

fn follow_ring(ring: &Ring, take: &impl Fn(&Transaction<'_>)) -> io::Result<()> {
    let (mut follower, since) = (Follower::default(), clock::wall().0);
    follower.poll(ring, since, |_| {})?;
    loop {
        std::thread::sleep(INTERVAL);
        follower.poll(ring, since, take)?;
    }
}

/// Reads the lines that are appended to a file. Reads a file that became shorter from its
/// beginning.
fn follow_lines(path: &Path, take: &impl Fn(&[u8])) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut at = file.seek(SeekFrom::End(0))?;
    let mut begun = Vec::new();
    loop {
        std::thread::sleep(INTERVAL);
        let length = file.metadata()?.len();
        if length < at {
            at = file.seek(SeekFrom::Start(0))?;
            begun.clear();
        }
        let mut bytes = Vec::new();
        at += file.read_to_end(&mut bytes)? as u64;
        begun.extend_from_slice(&bytes);
        let whole = memchr::memrchr(b'\n', &begun).map_or(0, |end| end + 1);
        begun[..whole].split(|byte| *byte == b'\n').for_each(take);
        begun.drain(..whole);
    }
}
