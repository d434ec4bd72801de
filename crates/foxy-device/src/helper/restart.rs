//! The state that is needed to replace a dead helper process: the pause before the next start, and
//! the files to open again.

use crate::io::{FileId, IoId, IoOp, StorePath};
use foxy_base::Instant;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The shortest and the longest pause between two starts of a helper process.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// A helper process that runs for at least this long counts as reliable. When such a helper dies,
/// the pause before the next start is the shortest pause.
const SOUND_LIFETIME: Duration = Duration::from_secs(60);

/// Computes the pause between two starts of a helper process. The pause doubles after each helper
/// that died early.
#[derive(Debug, Default)]
pub(super) struct BackOff {
    starts: u64,
    last: Option<Instant>,
    wait: Duration,
}

impl BackOff {
    /// Returns whether a helper may be started now. If true, counts the start and sets the next
    /// pause.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        let since = self.last.map(|last| now.since(last));
        if since.is_some_and(|since| since < self.wait) {
            return false;
        }
        let is_sound = since.is_none_or(|since| since >= SOUND_LIFETIME);
        self.wait = if is_sound { PAUSES.0 } else { (2 * self.wait).min(PAUSES.1) };
        self.last = Some(now);
        self.starts += 1;
        true
    }

    pub(super) const fn starts(&self) -> u64 {
        self.starts
    }
}

/// The smallest number of an operation that opens a file again in a new helper process. The device
/// submits these operations itself, so no caller waits for their answers.
const OWN: u64 = 1 << 63;

/// The open files, and the files for which the helper has not answered `Open` or `Create` yet.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    open: BTreeMap<FileId, Opened>,
    under_way: HashMap<IoId, (FileId, Opened)>,
}

#[derive(Clone, Debug)]
struct Opened {
    path: StorePath,
    is_block_device: bool,
}

impl OpenFiles {
    /// Notes a submitted operation if it opens, creates or closes a file.
    pub(super) fn note(&mut self, id: IoId, op: &IoOp) {
        let (file, path, is_block_device) = match op {
            IoOp::Open { file, path } | IoOp::Create { file, path, .. } => (file, path, false),
            IoOp::OpenBlockDevice { file, path } => (file, path, true),
            IoOp::Close { file } => {
                self.open.remove(file);
                return;
            }
            _ => return,
        };
        self.under_way.insert(id, (*file, Opened { path: path.clone(), is_block_device }));
    }

    /// Notes the answer to an operation. If the operation opened a file and succeeded (`is_done`),
    /// the file counts as open.
    pub(super) fn opened(&mut self, id: IoId, is_done: bool) {
        if let Some((file, opened)) = self.under_way.remove(&id).filter(|_| is_done) {
            self.open.insert(file, opened);
        }
    }

    /// Forgets the files whose `Open` or `Create` a dead helper never answered.
    pub(super) fn forget_opening(&mut self) {
        self.under_way.clear();
    }

    /// Returns the operations that open all files again in a new helper. If a file cannot be opened
    /// again, all later operations on that file fail.
    pub(super) fn open_again(&self) -> impl Iterator<Item = (IoId, IoOp)> + use<'_> {
        self.open.iter().zip(OWN..).map(|((&file, Opened { path, is_block_device }), number)| {
            let path = path.clone();
            let op = if *is_block_device {
                IoOp::OpenBlockDevice { file, path }
            } else {
                IoOp::Open { file, path }
            };
            (IoId(number), op)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_off_grows_until_a_helper_lived_for_a_minute() {
        let mut back_off = BackOff::default();
        let at = |milliseconds| Instant::ZERO + Duration::from_millis(milliseconds);
        let starts: Vec<u64> = (0..100_000).filter(|&now| back_off.is_over(at(now))).collect();
        assert_eq!(starts[..5], [0, 100, 300, 700, 1_500]);
        assert_eq!(starts.len() as u64, back_off.starts());
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] <= 30_000));
        assert!(back_off.is_over(at(200_000)) && !back_off.is_over(at(200_099)));
        assert!(back_off.is_over(at(200_100)));
    }
}
