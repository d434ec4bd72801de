//! Opens a store. Reads the superblocks and the index of the last close from the control file, and
//! checks which data files exist. Then raises the generation (the number of openings) on disk, so
//! that the old index becomes invalid. The code calls this step "claim".

use super::entries::NewEntry;
use super::image::{self, ListedSlot};
use super::work::{Job, filled};
use super::{CONTROL, Slotted, SlottedPhase, slots_of};
use foxy_base::Random;
use foxy_device::{DirectoryEntry, IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};
use foxy_store::beginning::{AnewReason, Beginning};
use foxy_store::completion::written;
use foxy_store::contract::Outbox;
use foxy_store::layout::{PAGE, SLOT};
use foxy_store::record::slots_for;
use foxy_store::status::{OpenStoreError, StoreStatus};
use foxy_store::superblock::{Found, Superblock};
use std::collections::VecDeque;

const MAX_READ_BYTES: usize = 1 << 20;

const LOST: Beginning = Beginning::Anew(AnewReason::IndexLost);
/// Maximum number of attempts to write and sync the superblocks during an opening.
const CLAIM_ATTEMPTS: u32 = 3;

#[derive(Debug)]
pub enum Opening {
    Control,
    Creating,
    /// Makes the new control file durable. Otherwise a crash could remove the file after records
    /// were written.
    Created,
    /// Reads the superblocks of a control file of `size` bytes.
    Superblocks {
        size: u64,
    },
    /// Reads the index into `bytes`. The first page of the index contains the `length` of the index
    /// in bytes.
    Index {
        bytes: Vec<u8>,
        length: Option<usize>,
    },
    Directory,
    /// Lists the folder `path`. Later lists the folders in `next`. Then removes the data files in
    /// `stale`. The index has no record in these files.
    Listing {
        path: StorePath,
        next: Vec<StorePath>,
        stale: Vec<StorePath>,
    },
    /// Removes the stale files. `left` of them are not removed yet.
    Removing {
        left: usize,
    },
    /// Writes and syncs the superblocks with the new generation (number of the opening). `steps`
    /// are the remaining steps.
    Claiming {
        steps: VecDeque<OpenStep>,
        attempt: u32,
    },
}

#[derive(Debug)]
pub enum OpenStep {
    /// Writes copy number 0 or 1 of the superblock.
    Write(usize),
    Sync,
}

impl Slotted {
    fn control_path(&self) -> StorePath {
        StorePath::new(format!("{}.foxy", self.plan.name))
    }

    fn go(&mut self, opening: Opening, op: IoOp, out: &mut Outbox) {
        self.phase = SlottedPhase::Opening(opening);
        self.submit(op, Job::Open, out);
    }

    pub(super) fn begin_opening(&mut self, out: &mut Outbox) {
        let op = IoOp::Open { file: CONTROL, path: self.control_path() };
        self.go(Opening::Control, op, out);
    }

    fn fail(&mut self, error: OpenStoreError) {
        self.phase = SlottedPhase::Unusable(error);
        self.observer.status.set(StoreStatus::Unusable(error));
    }

    pub(super) fn opening_step(&mut self, done: IoDone, out: &mut Outbox) {
        let SlottedPhase::Opening(opening) = std::mem::replace(&mut self.phase, SlottedPhase::New)
        else {
            return;
        };
        match opening {
            Opening::Control => match done.result {
                Ok(IoOutput::Opened { size: 0 }) | Err(IoError::NotFound) => {
                    self.create_control(out)
                }
                Ok(IoOutput::Opened { size }) => {
                    self.go(Opening::Superblocks { size }, read(0, 2 * PAGE), out)
                }
                result => {
                    self.fail(OpenStoreError::opening(result.err().unwrap_or(IoError::Device)))
                }
            },
            Opening::Creating => match done.result {
                Ok(_) => self.go(Opening::Created, IoOp::Sync { file: CONTROL }, out),
                Err(IoError::NoSpace) => self.fail(OpenStoreError::NoSpace),
                Err(error) => self.fail(OpenStoreError::Device(error)),
            },
            Opening::Created => match done.result {
                Ok(_) => self.begin_anew(Beginning::of_blank(&self.settings.store), out),
                Err(error) => self.fail(OpenStoreError::Device(error)),
            },
            Opening::Superblocks { size } => self.superblocks_read(size, done, out),
            Opening::Index { bytes, length } => self.index_read(bytes, length, done, out),
            Opening::Directory => match done.result {
                Ok(_) => self.list_next(vec![self.directory()], Vec::new(), out),
                Err(error) => self.fail(OpenStoreError::Device(error)),
            },
            Opening::Listing { path, mut next, mut stale } => match done.result {
                Ok(IoOutput::Listing(listed)) => {
                    for entry in listed {
                        self.judge_entry(&path, &entry, &mut next, &mut stale);
                    }
                    self.list_next(next, stale, out);
                }
                result => {
                    self.fail(OpenStoreError::Device(result.err().unwrap_or(IoError::Device)))
                }
            },
            step @ Opening::Removing { .. } => self.phase = SlottedPhase::Opening(step),
            Opening::Claiming { steps, attempt } => match written(&done) {
                Ok(()) => self.claim_next(steps, attempt, out),
                Err(_) if attempt < CLAIM_ATTEMPTS => self.claim_durably(attempt + 1, out),
                Err(error) => self.fail(OpenStoreError::Device(error)),
            },
        }
    }

    fn create_control(&mut self, out: &mut Outbox) {
        let op = IoOp::Create { file: CONTROL, path: self.control_path(), size: 2 * PAGE as u64 };
        self.go(Opening::Creating, op, out);
    }

    fn superblocks_read(&mut self, size: u64, done: IoDone, out: &mut Outbox) {
        let buffer = match (done.result, done.buffer) {
            (Ok(IoOutput::Moved { count }), Some(mut buffer)) => {
                buffer.truncate(count.min(buffer.len()));
                buffer
            }
            (result, _) => {
                return self.fail(OpenStoreError::Device(result.err().unwrap_or(IoError::Device)));
            }
        };
        let bytes = buffer.as_ref();
        if (bytes.len() as u64) < size.min(2 * PAGE as u64) {
            return self.fail(OpenStoreError::Device(IoError::Device));
        }
        let (first, second) = bytes.split_at(bytes.len().min(PAGE));
        match Superblock::judge(first, second) {
            Err(error) => self.fail(error),
            Ok(Found::Ours(superblock)) if superblock.requested == self.settings.store.size => {
                self.superblock = superblock;
                self.secret = superblock.secret();
                self.sequence = (superblock.opens + 1) << 40;
                let opening = Opening::Index { bytes: Vec::new(), length: None };
                self.go(opening, read(2 * PAGE as u64, PAGE), out);
            }
            Ok(Found::Ours(superblock)) => {
                self.superblock = superblock;
                let reason = AnewReason::other_size(&superblock, &self.settings.store);
                self.begin_anew(Beginning::Anew(reason), out);
            }
            Ok(Found::Blank) if size > 2 * PAGE as u64 => self.fail(OpenStoreError::Foreign),
            Ok(Found::Blank) => self.begin_anew(Beginning::of_blank(&self.settings.store), out),
            Ok(Found::Damaged) => {
                self.begin_anew(Beginning::Anew(AnewReason::SuperblocksDamaged), out)
            }
        }
    }

    /// Starts an empty store. A new secret for checksums makes all old records invalid.
    fn begin_anew(&mut self, beginning: Beginning, out: &mut Outbox) {
        self.observer.begins(beginning);
        let old = self.superblock;
        let mut random =
            Random::new(self.settings.store.seed ^ old.salt.rotate_left(17) ^ (old.generation + 1));
        self.superblock.salt = random.next_u64();
        self.secret = self.superblock.secret();
        self.sequence = (old.opens + 1) << 40;
        self.make_directory(out);
    }

    fn index_read(
        &mut self,
        mut bytes: Vec<u8>,
        wanted: Option<usize>,
        done: IoDone,
        out: &mut Outbox,
    ) {
        let generation = self.superblock.generation;
        let Ok(buffer) = filled(done) else { return self.begin_anew(LOST, out) };
        bytes.extend_from_slice(buffer.as_ref());
        let wanted = wanted.or_else(|| {
            let length = usize::try_from(image::length(&bytes, generation, &self.secret)?).ok()?;
            let most = usize::try_from(super::index_bytes(self.settings.store.size)).ok()?;
            Some((image::HEAD + length).next_multiple_of(PAGE)).filter(|&all| all <= most)
        });
        match wanted {
            None => self.begin_anew(LOST, out),
            Some(all) if bytes.len() < all => {
                let offset = (2 * PAGE + bytes.len()) as u64;
                let length = (all - bytes.len()).min(MAX_READ_BYTES);
                self.go(Opening::Index { bytes, length: wanted }, read(offset, length), out);
            }
            Some(_) => match image::decode(&bytes, generation, &self.secret) {
                Some(listed) => self.adopt(listed, out),
                None => self.begin_anew(LOST, out),
            },
        }
    }

    fn adopt(&mut self, listed: Vec<ListedSlot>, out: &mut Outbox) {
        self.observer.begins(Beginning::Kept);
        for record in listed {
            let slots: u64 = record.pieces.iter().map(|piece| u64::from(piece.slots)).sum();
            let sound = slots == u64::from(slots_for(record.content as usize))
                && self.entries.find(record.key).is_none()
                && self.layout.adopt(&record.pieces);
            if sound {
                for piece in &record.pieces {
                    self.files.adopt(piece.file);
                }
                let ListedSlot { key, site, sequence, content, .. } = record;
                let id =
                    self.entries.insert(NewEntry { key, site, sequence, content, in_memory: None });
                self.note_start(id, &record.pieces);
                self.entries.get_mut(id).pieces = record.pieces;
            }
        }
        let live = u64::from(self.entries.live());
        self.observer.statistics.recovered.add(live);
        self.observer.statistics.recovered_from_checkpoint.add(live);
        self.make_directory(out);
    }

    fn make_directory(&mut self, out: &mut Outbox) {
        self.go(Opening::Directory, IoOp::MakeDir { path: self.directory() }, out);
    }

    /// Lists the next folder. After the last folder, removes the stale files: data files in which
    /// the index has no record.
    fn list_next(&mut self, mut next: Vec<StorePath>, stale: Vec<StorePath>, out: &mut Outbox) {
        match next.pop() {
            Some(path) => {
                let opening = Opening::Listing { path: path.clone(), next, stale };
                self.go(opening, IoOp::List { path }, out);
            }
            None => self.remove_stale(stale, out),
        }
    }

    /// Decides about an entry of a folder. A subfolder is listed next. A data file in which the
    /// index has no record is removed later. An entry of another program stays untouched.
    fn judge_entry(
        &mut self,
        folder: &StorePath,
        entry: &DirectoryEntry,
        next: &mut Vec<StorePath>,
        stale: &mut Vec<StorePath>,
    ) {
        let path = StorePath::new(format!("{}/{}", folder.as_str(), entry.name));
        match u64::from_str_radix(&entry.name, 16) {
            Ok(_) if entry.is_directory => next.push(path),
            Ok(file) if !self.files.exists(file) || self.path_of(file) != path => stale.push(path),
            Ok(file) => self.layout.found(file, entry.size.div_ceil(SLOT as u64)),
            Err(_) => self.observer.statistics.foreign_files.set(1),
        }
    }

    fn remove_stale(&mut self, stale: Vec<StorePath>, out: &mut Outbox) {
        let count = stale.len();
        for path in stale {
            self.submit(IoOp::Remove { path }, Job::RemoveStale, out);
        }
        self.phase = SlottedPhase::Opening(Opening::Removing { left: count });
        if count == 0 {
            self.claim(out);
        }
    }

    pub(super) fn removed_stale(&mut self, out: &mut Outbox) {
        if let SlottedPhase::Opening(Opening::Removing { left }) = &mut self.phase {
            *left -= 1;
            if *left == 0 {
                self.claim(out);
            }
        }
    }

    /// Raises the generation (number of the opening), so that later openings treat the index on
    /// disk as invalid.
    fn claim(&mut self, out: &mut Outbox) {
        self.superblock.generation += 1;
        self.superblock.opens += 1;
        self.superblock.requested = self.settings.store.size;
        self.superblock.size = self.settings.store.size;
        self.claim_durably(1, out);
    }

    /// Writes and syncs both copies of the superblock. Each attempt writes to the same place, so it
    /// replaces what a failed attempt left.
    fn claim_durably(&mut self, attempt: u32, out: &mut Outbox) {
        let steps = [OpenStep::Write(0), OpenStep::Sync, OpenStep::Write(1), OpenStep::Sync];
        self.claim_next(steps.into(), attempt, out);
    }

    fn claim_next(&mut self, mut steps: VecDeque<OpenStep>, attempt: u32, out: &mut Outbox) {
        let op = match steps.pop_front() {
            Some(OpenStep::Write(copy)) => IoOp::Write {
                file: CONTROL,
                offset: (copy * PAGE) as u64,
                buffer: IoBuffer::copy_of(&self.superblock.encode()),
            },
            Some(OpenStep::Sync) => IoOp::Sync { file: CONTROL },
            None => {
                assert!(
                    u64::from(slots_of(self.settings.store.size)) >= self.layout.capacity(),
                    "within the size"
                );
                self.phase = SlottedPhase::Serving;
                return self.observer.status.set(StoreStatus::Serving);
            }
        };
        self.go(Opening::Claiming { steps, attempt }, op, out);
    }
}

fn read(offset: u64, length: usize) -> IoOp {
    IoOp::Read { file: CONTROL, offset, buffer: IoBuffer::zeroed(length) }
}
