//! Which files a helper has open: another one in its place must have the same.

use crate::io::{FileId, IoId, IoOp, StorePath};
use std::collections::{BTreeMap, HashMap};

/// From here on numbers belong to operations that nobody waits for.
const OWN: u64 = 1 << 63;

/// The files that are open, and those that are being opened.
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
    /// Takes note of an operation that is submitted.
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

    /// An operation is answered: if it was to open a file, that is open or not.
    pub(super) fn opened(&mut self, id: IoId, is_done: bool) {
        if let Some((file, opened)) = self.under_way.remove(&id).filter(|_| is_done) {
            self.open.insert(file, opened);
        }
    }

    /// The helper that was to open these is dead.
    pub(super) fn forget_those_under_way(&mut self) {
        self.under_way.clear();
    }

    /// What opens all of them in another helper. One that cannot be opened again fails whatever is
    /// asked of it.
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
