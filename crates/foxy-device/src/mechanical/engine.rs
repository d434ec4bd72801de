//! Operations in steps and the requests they wait for, in the order of time. What an operation
//! needs is decided elsewhere.

use super::Mechanical;
use super::aging::Aged;
use super::counts::RequestKind;
use super::names::{ENTRY, Search};
use super::profile::SECTOR;
use super::queue::{DiskRequest, RequestId};
use super::volume::OperationId;
use crate::io::IoDone;
use crate::memory::FileNumber;
use foxy_base::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// One step of an operation; the next one begins when all it waits for is done.
#[derive(Debug)]
pub(super) enum Step {
    /// Waits for requests, those of them that are still under way.
    Await(Vec<RequestId>),
    /// Brings a block of inodes or of a directory into memory.
    Need(u64),
    /// Brings a directory's blocks into memory, one after the other, and has the processor look at
    /// its entries.
    Search(Search),
    /// Writes such a block.
    WriteBlock(u64),
    /// Hands pages that have been written over to the page cache.
    Wrote { file: FileNumber, first: u64, last: u64 },
    /// Waits until no more than is allowed is on its way to the disk.
    Hold,
    /// Sends out what is collected of a file, and waits for all that is under way of it.
    Sync(FileNumber),
}

/// An operation whose completion waits for its steps.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) done: IoDone,
    pub(super) volume: usize,
    pub(super) steps: VecDeque<Step>,
    /// What it waits for now.
    pub(super) pending: usize,
}

/// Whom the end of a write that no operation asked for concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Only those that wait.
    Foreground,
    /// Pages of a file.
    Data(FileNumber),
    /// A block of inodes or of a directory.
    Block(u64),
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Pending {
    volume: usize,
    bytes: u64,
    purpose: Purpose,
    waiting: Vec<OperationId>,
}

impl Mechanical {
    /// Starts an operation whose content is dealt with already.
    pub(super) fn begin(&mut self, done: IoDone, volume: usize, steps: VecDeque<Step>) {
        let id = self.next_number();
        self.operations.insert(id, Operation { done, volume, steps, pending: 0 });
        self.proceed(id);
    }

    /// When a disk will next be done with a request, or the processor with an operation.
    pub(super) fn next_finish(&self) -> Option<Instant> {
        let disks = self.volumes.iter().filter_map(|volume| volume.spindle.next_finish());
        disks.chain(self.processor.next_finish()).min()
    }

    /// Plays everything that happens up to `now`, in order.
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

    /// Sends a request to a disk.
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

    /// Marks a block of inodes or of a directory as changed; it is written back later.
    pub(super) fn change_block(&mut self, volume: usize, block: u64) {
        self.aging.add(Aged::Block { volume, block }, self.now);
    }

    /// Sends out one thing that waited long enough, or the next one whatever its age.
    pub(super) fn write_back(&mut self) {
        match self.aging.take_first() {
            Some(Aged::File(file)) => self.send_collected(file),
            Some(Aged::Block { volume, block }) => {
                if self.volumes[volume].written_back.insert(block) {
                    self.issue_block(
                        volume,
                        RequestKind::MetadataWrite,
                        block,
                        Purpose::Block(block),
                    );
                } else {
                    // It is on its way as it was before the last change.
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

    /// Ends what ends now; the disks go on with what waits by then.
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
                    file.under_way.retain(|&request| request != id);
                }
            }
            Purpose::Block(block) => {
                self.volumes[volume].written_back.remove(&block);
            }
        }
        if self.volumes[volume].behind <= self.profile.system.write_behind * 2 / 3 {
            for operation in std::mem::take(&mut self.volumes[volume].held) {
                self.release(operation);
            }
        }
        for operation in waiting {
            self.release(operation);
        }
    }

    /// One thing less to wait for.
    fn release(&mut self, id: OperationId) {
        let operation = self.operations.get_mut(&id).expect("who waits is in progress");
        operation.pending -= 1;
        if operation.pending == 0 {
            self.proceed(id);
        }
    }

    /// Takes steps until one has to wait, or the operation is done.
    fn proceed(&mut self, id: OperationId) {
        loop {
            let operation = self.operations.get_mut(&id).expect("who proceeds is in progress");
            let Some(step) = operation.steps.pop_front() else { break };
            let volume = operation.volume;
            if self.take_step(id, volume, step) {
                return;
            }
        }
        let operation = self.operations.remove(&id).expect("it was just there");
        self.ready.push_back((self.now, operation.done));
    }

    /// Whether the operation has to wait.
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
                let under_way = self.files.get(&file).map(|file| file.under_way.clone());
                self.wait_for(id, &under_way.unwrap_or_default())
            }
            Step::Hold => self.hold(id, volume),
            Step::Sync(file) => {
                self.send_collected(file);
                let under_way = self.files.get(&file).map(|file| file.under_way.clone());
                self.wait_for(id, &under_way.unwrap_or_default())
            }
        }
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
        volume.held.push_back(id);
        self.operations.get_mut(&id).expect("who is held is in progress").pending += 1;
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
        self.operations.get_mut(&id).expect("who waits is in progress").pending += count;
        count > 0
    }
}
