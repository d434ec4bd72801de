//! The engine of the disk model. An operation (such as a read of a file) is a sequence of steps,
//! and a step may wait for disk requests. The engine processes all events in the order of simulated
//! time.

use super::Mechanical;
use super::aging::Aged;
use super::counts::RequestKind;
use super::layout::Layout;
use super::lru::Lru;
use super::names::{ENTRY, Search};
use super::profile::{DiskProfile, SECTOR};
use super::spindle::{DiskRequest, RequestId, Spindle};
use crate::io::IoDone;
use crate::memory::FileNumber;
use foxy_base::Instant;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// A step of an operation in the disk model. The next step starts when all events that this step
/// waits for have happened.
#[derive(Debug)]
pub(super) enum Step {
    /// Waits until no disk request of this list is in flight.
    Await(Vec<RequestId>),
    /// Reads the inode or directory block at this sector into the simulated memory, unless it is
    /// there already.
    Need(u64),
    /// Reads a directory's blocks into memory one after another. Then the simulated processor
    /// searches the directory's entries.
    Search(Search),
    /// Writes the inode or directory block at this sector.
    WriteBlock(u64),
    /// Puts pages `first` to `last` of a file into the page cache as changed pages, after a write
    /// to the file.
    Wrote { file: FileNumber, first: u64, last: u64 },
    /// Waits while the background writes in flight to the disk have more than `write_behind` bytes,
    /// a limit in the disk's profile.
    Hold,
    /// Sends the changed pages of a file to the disk. Waits for all of the file's writes in flight.
    Sync(FileNumber),
}

/// An operation of the device's user that is in progress in the disk model.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) done: IoDone,
    pub(super) volume: usize,
    pub(super) steps: VecDeque<Step>,
    /// Number of events that the operation still waits for: finished disk requests, processor work,
    /// or free space for writes.
    pub(super) pending: usize,
}

/// The engine's action after a disk request finishes. In addition, the operations that wait for the
/// request always continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The engine takes no additional action.
    Foreground,
    Data(FileNumber),
    Block(u64),
}

/// A disk request in flight, with the operations that wait for it.
#[derive(Debug)]
pub(super) struct Pending {
    volume: usize,
    bytes: u64,
    purpose: Purpose,
    waiting: Vec<OperationId>,
}

impl Mechanical {
    /// Starts an operation in the disk model. Its steps only compute how long the operation takes,
    /// because the file content has already changed.
    pub(super) fn begin(&mut self, done: IoDone, volume: usize, steps: VecDeque<Step>) {
        let id = self.next_number();
        self.operations.insert(id, Operation { done, volume, steps, pending: 0 });
        self.proceed(id);
    }

    /// Returns the next time at which a disk finishes a request or the simulated processor finishes
    /// its work for an operation.
    pub(super) fn next_finish(&self) -> Option<Instant> {
        let disks = self.volumes.iter().filter_map(|volume| volume.spindle.next_finish());
        disks.chain(self.processor.next_finish()).min()
    }

    /// Processes all events of the model up to the simulated time `now`, in the order of time.
    pub(super) fn advance(&mut self, now: Instant) {
        loop {
            let finish = self.next_finish().filter(|&at| at <= now);
            match self.aging.next_due().filter(|&at| at <= now) {
                Some(at) if finish.is_none_or(|finish| at < finish) => {
                    self.now = at;
                    self.write_back();
                }
                _ => match finish {
                    Some(at) => self.finish_requests(at),
                    None => break,
                },
            }
        }
        self.now = self.now.max(now);
    }

    pub(super) fn issue(
        &mut self,
        volume: usize,
        kind: RequestKind,
        address: u64,
        sectors: u64,
        purpose: Purpose,
    ) -> RequestId {
        let id = self.next_number();
        let bytes = sectors * SECTOR;
        let place = &mut self.volumes[volume];
        place.behind += if purpose == Purpose::Foreground { 0 } else { bytes };
        place.spindle.push(DiskRequest { id, kind, address, sectors, arrival: self.now });
        self.requests.insert(id, Pending { volume, bytes, purpose, waiting: Vec::new() });
        id
    }

    /// Marks an inode or directory block as changed, so that it is written back later.
    pub(super) fn change_block(&mut self, volume: usize, block: u64) {
        self.aging.add(Aged::Block { volume, block }, self.now);
    }

    /// Writes the changed block or file pages whose write is due first.
    pub(super) fn write_back(&mut self) {
        match self.aging.take_first() {
            Some(Aged::File(file)) => self.send_collected(file),
            Some(Aged::Block { volume, block }) => {
                if self.volumes[volume].written_back.insert(block) {
                    let purpose = Purpose::Block(block);
                    self.issue_block(volume, RequestKind::MetadataWrite, block, purpose);
                } else {
                    // The disk is already writing an older state of the block, so the block must be
                    // written again.
                    self.change_block(volume, block);
                }
            }
            None => {}
        }
    }

    fn issue_block(
        &mut self,
        volume: usize,
        kind: RequestKind,
        block: u64,
        purpose: Purpose,
    ) -> RequestId {
        self.issue(volume, kind, block, u64::from(self.profile.system.page_size) / SECTOR, purpose)
    }

    /// Finishes all disk requests that end at `at`. Then each disk starts the next request from its
    /// queue. The queue may contain requests that the finished requests caused.
    fn finish_requests(&mut self, at: Instant) {
        self.now = at;
        while let Some(operation) = self.processor.finish(at) {
            self.release(operation);
        }
        for volume in 0..self.volumes.len() {
            if self.volumes[volume].spindle.next_finish() == Some(at)
                && let Some((id, record)) = self.volumes[volume].spindle.finish()
            {
                self.log.note(record);
                self.finish_request(id);
                self.volumes[volume].spindle.resume();
            }
        }
    }

    fn finish_request(&mut self, id: RequestId) {
        let Some(pending) = self.requests.remove(&id) else { return };
        let Pending { volume, bytes, purpose, waiting } = pending;
        if purpose != Purpose::Foreground {
            self.volumes[volume].behind -= bytes;
        }
        match purpose {
            Purpose::Foreground => {}
            Purpose::Data(file) => {
                if let Some(file) = self.files.get_mut(&file) {
                    file.in_flight.retain(|&request| request != id);
                }
            }
            Purpose::Block(block) => {
                self.volumes[volume].written_back.remove(&block);
            }
        }
        if self.volumes[volume].behind <= self.profile.system.write_behind * 2 / 3 {
            for operation in std::mem::take(&mut self.volumes[volume].throttled) {
                self.release(operation);
            }
        }
        for operation in waiting {
            self.release(operation);
        }
    }

    /// Notes that an event has happened for which the operation waits. If the operation waits for
    /// no other event, it continues.
    fn release(&mut self, id: OperationId) {
        let operation = self.operations.get_mut(&id).expect("a waiting operation is in progress");
        operation.pending -= 1;
        if operation.pending == 0 {
            self.proceed(id);
        }
    }

    /// Performs steps of an operation until a step has to wait or the operation is finished.
    fn proceed(&mut self, id: OperationId) {
        loop {
            let operation =
                self.operations.get_mut(&id).expect("a proceeding operation is in progress");
            let Some(step) = operation.steps.pop_front() else { break };
            let volume = operation.volume;
            if self.take_step(id, volume, step) {
                return;
            }
        }
        let operation = self.operations.remove(&id).expect("it was just there");
        self.ready.push_back((self.now, operation.done));
    }

    /// Performs a step. Returns true if the operation has to wait before its next step.
    fn take_step(&mut self, id: OperationId, volume: usize, step: Step) -> bool {
        match step {
            Step::Await(requests) => self.wait_for(id, &requests),
            Step::Need(block) => self.need(id, volume, block),
            Step::Search(search) => self.search_on(id, volume, search),
            Step::WriteBlock(block) => {
                let request = self.issue_block(
                    volume,
                    RequestKind::MetadataWrite,
                    block,
                    Purpose::Foreground,
                );
                self.aging.remove(Aged::Block { volume, block });
                self.wait_for(id, &[request])
            }
            Step::Wrote { file, first, last } => {
                self.collect(file, first, last);
                if self.profile.system.write_behind > 0 {
                    return self.hold(id, volume);
                }
                self.send_collected(file);
                self.wait_for_writes(id, file)
            }
            Step::Hold => self.hold(id, volume),
            Step::Sync(file) => {
                self.send_collected(file);
                self.wait_for_writes(id, file)
            }
        }
    }

    fn wait_for_writes(&mut self, id: OperationId, file: FileNumber) -> bool {
        let in_flight = self.files.get(&file).map(|file| file.in_flight.clone());
        self.wait_for(id, &in_flight.unwrap_or_default())
    }

    fn need(&mut self, id: OperationId, volume: usize, block: u64) -> bool {
        let request = match self.volumes[volume].blocks.get(block) {
            Some(request) if !self.requests.contains_key(&request) => return false,
            Some(request) => request,
            None => {
                let request =
                    self.issue_block(volume, RequestKind::MetadataRead, block, Purpose::Foreground);
                self.volumes[volume].blocks.insert(block, request);
                request
            }
        };
        self.wait_for(id, &[request])
    }

    fn search_on(&mut self, id: OperationId, volume: usize, mut search: Search) -> bool {
        while let Some(block) = search.blocks.next() {
            let sector = self.directories.get(search.directory).sector(block);
            if self.need(id, volume, sector) {
                self.operation(id).steps.push_front(Step::Search(search));
                return true;
            }
        }
        let (rate, bytes) =
            (self.profile.system.search_rate, u64::from(search.entries) * u64::from(ENTRY));
        let work = Duration::from_nanos((bytes * 1_000_000_000).checked_div(rate).unwrap_or(0));
        if work.is_zero() {
            return false;
        }
        self.processor.begin(self.now, work, id);
        self.operation(id).pending += 1;
        true
    }

    fn operation(&mut self, id: OperationId) -> &mut Operation {
        self.operations.get_mut(&id).expect("its steps are taken")
    }

    fn hold(&mut self, id: OperationId, volume: usize) -> bool {
        let volume = &mut self.volumes[volume];
        if volume.behind <= self.profile.system.write_behind {
            return false;
        }
        volume.throttled.push_back(id);
        self.operations.get_mut(&id).expect("a waiting operation is in progress").pending += 1;
        true
    }

    fn wait_for(&mut self, id: OperationId, requests: &[RequestId]) -> bool {
        let mut count = 0;
        for request in requests {
            if let Some(pending) = self.requests.get_mut(request) {
                pending.waiting.push(id);
                count += 1;
            }
        }
        self.operations.get_mut(&id).expect("a waiting operation is in progress").pending += count;
        count > 0
    }
}

#[derive(Debug, Default)]
pub(super) struct Processor {
    /// Operations with work for the processor, in the order in which the work ends.
    queue: VecDeque<(Instant, OperationId)>,
}

impl Processor {
    /// Queues `work` (processor time) for an operation. The processor starts it after all earlier
    /// work.
    pub(super) fn begin(&mut self, now: Instant, work: Duration, operation: OperationId) {
        let start = self.next_free(now);
        self.queue.push_back((start + work, operation));
    }

    fn next_free(&self, now: Instant) -> Instant {
        self.queue.back().map_or(now, |&(finish, _)| finish)
    }

    pub(super) fn next_finish(&self) -> Option<Instant> {
        self.queue.front().map(|&(finish, _)| finish)
    }

    pub(super) fn finish(&mut self, at: Instant) -> Option<OperationId> {
        let due = self.next_finish() == Some(at);
        due.then(|| self.queue.pop_front()).flatten().map(|(_, operation)| operation)
    }
}

/// Identifies an operation. The model gives each number only once.
pub(super) type OperationId = u64;

/// A simulated disk with its file system, its cached blocks and its background writes.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) spindle: Spindle,
    pub(super) layout: Layout,
    /// Cached inode and directory blocks (LRU) by first sector. The value is the disk request that
    /// last read the block.
    pub(super) blocks: Lru<u64, RequestId>,
    pub(super) written_back: HashSet<u64>,
    /// Number of bytes of background writes in flight: writes of file pages, and delayed writes of
    /// blocks.
    pub(super) behind: u64,
    /// Operations that wait until `behind` falls to at most two thirds of its limit.
    pub(super) throttled: VecDeque<OperationId>,
}

impl Volume {
    pub(super) fn new(spindle: Spindle, profile: &DiskProfile) -> Self {
        let system = &profile.system;
        let blocks = system.metadata_cache / u64::from(system.page_size);
        Self {
            spindle,
            layout: Layout::new(profile),
            blocks: Lru::new(usize::try_from(blocks).unwrap_or(usize::MAX)),
            written_back: HashSet::new(),
            behind: 0,
            throttled: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_serves_one_operation_after_the_other() {
        let mut processor = Processor::default();
        assert_eq!(processor.next_finish(), None);
        processor.begin(Instant(10), Duration::from_nanos(5), 1);
        processor.begin(Instant(12), Duration::from_nanos(5), 2);
        assert_eq!(processor.next_finish(), Some(Instant(15)));
        assert_eq!(processor.finish(Instant(14)), None);
        assert_eq!((processor.finish(Instant(15)), processor.finish(Instant(15))), (Some(1), None));
        assert_eq!((processor.finish(Instant(20)), processor.next_finish()), (Some(2), None));
    }
}
