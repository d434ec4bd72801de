//! Moves file pages between the simulated page cache and the disk. Reads missing pages, and writes
//! changed pages that were collected to be written together.

use super::Mechanical;
use super::aging::Aged;
use super::counts::RequestKind;
use super::engine::Purpose;
use super::layout::{FRAGMENT, sector_of};
use super::spindle::RequestId;
use crate::memory::FileNumber;
use std::ops::RangeInclusive;

/// The request number of a cached page that was written but never read from the disk.
const WRITTEN: RequestId = 0;

#[derive(Clone, Copy, Debug)]
struct Run {
    page: u64,
    pages: u64,
    start: u32,
    fragments: u32,
}

impl Mechanical {
    pub(super) fn page_size(&self) -> u64 {
        u64::from(self.profile.system.page_size)
    }

    pub(super) fn file_size(&self, number: FileNumber) -> u64 {
        self.inner.size_of(number).unwrap_or(0)
    }

    /// Reads the pages that are not cached. Returns the disk requests that must finish before all
    /// pages are cached, including earlier requests in flight. Adjacent pages share a request,
    /// except in a read that precedes a write of a part of a page.
    pub(super) fn read_pages(
        &mut self,
        number: FileNumber,
        pages: RangeInclusive<u64>,
        kind: RequestKind,
    ) -> Vec<RequestId> {
        let Some(file) = self.files.get(&number) else { return Vec::new() };
        let (volume, content) = (file.volume, file.content);
        let mut missing = Vec::new();
        let mut requests = Vec::new();
        for page in pages {
            if file.collected.contains(&page) {
                continue;
            }
            match self.pages.get((content, page)) {
                Some(request) if self.requests.contains_key(&request) => {
                    if !requests.contains(&request) {
                        requests.push(request);
                    }
                }
                Some(_) => {}
                None => missing.push(page),
            }
        }
        for run in self.runs(number, missing.into_iter(), kind == RequestKind::Read) {
            let request = self.issue(
                volume,
                kind,
                sector_of(run.start),
                sector_of(run.fragments),
                Purpose::Foreground,
            );
            for page in run.page..run.page + run.pages {
                self.pages.insert((content, page), request);
            }
            requests.push(request);
        }
        requests
    }

    /// Returns the last page to read, including read-ahead. The model reads ahead if the read
    /// starts at the beginning of the file or continues the previous read.
    pub(super) fn read_ahead(
        &mut self,
        number: FileNumber,
        offset: u64,
        end: u64,
        last: u64,
    ) -> u64 {
        let (ahead, page_size) = (self.profile.system.read_ahead, self.page_size());
        let Some(file) = self.files.get_mut(&number) else { return last };
        let goes_on = offset == 0 || offset == file.next_read;
        file.next_read = end;
        if !goes_on || ahead == 0 {
            return last;
        }
        let size = self.file_size(number);
        last.max((offset + ahead).min(size).saturating_sub(1) / page_size)
    }

    /// Puts changed pages of a file into the cache. Collects them so that a later request writes
    /// several pages together.
    pub(super) fn collect(&mut self, number: FileNumber, first: u64, last: u64) {
        let Some(file) = self.files.get_mut(&number) else { return };
        for page in first..=last {
            self.pages.insert((file.content, page), WRITTEN);
        }
        let goes_on = first <= file.collected.end && file.collected.start <= last + 1;
        if !file.collected.is_empty() && !goes_on {
            self.send_collected(number);
        }
        let page_size = self.page_size();
        let Some(file) = self.files.get_mut(&number) else { return };
        if file.collected.is_empty() {
            file.collected = first..last + 1;
        } else {
            file.collected = file.collected.start.min(first)..file.collected.end.max(last + 1);
        }
        if (file.collected.end - file.collected.start) * page_size >= self.profile.system.cluster {
            self.send_collected(number);
        } else {
            self.aging.add(Aged::File(number), self.now);
        }
    }

    /// Writes the collected (changed) pages of a file to its disk.
    pub(super) fn send_collected(&mut self, number: FileNumber) {
        self.aging.remove(Aged::File(number));
        let Some(file) = self.files.get_mut(&number) else { return };
        let (volume, collected) = (file.volume, std::mem::take(&mut file.collected));
        for run in self.runs(number, collected, true) {
            let request = self.issue(
                volume,
                RequestKind::Write,
                sector_of(run.start),
                sector_of(run.fragments),
                Purpose::Data(number),
            );
            if let Some(file) = self.files.get_mut(&number) {
                file.in_flight.push(request);
            }
        }
    }

    /// Returns the places of these pages on the disk. Leaves out fragments beyond the end of the
    /// file. If `join` is true, pages that are adjacent in the file and on the disk form one run.
    fn runs(&self, number: FileNumber, pages: impl Iterator<Item = u64>, join: bool) -> Vec<Run> {
        let Some(file) = self.files.get(&number) else { return Vec::new() };
        let page_fragments = self.volumes[file.volume].layout.page_fragments();
        let size = self.file_size(number);
        let mut runs: Vec<Run> = Vec::new();
        for page in pages {
            let Some((start, placed)) = file.extents.find(page, page_fragments) else { continue };
            let filled = size.saturating_sub(page * self.page_size()).div_ceil(FRAGMENT);
            let fragments = u32::try_from(filled).unwrap_or(u32::MAX).min(placed);
            if fragments == 0 {
                continue;
            }
            match runs.last_mut() {
                Some(run)
                    if join
                        && run.page + run.pages == page
                        && run.start + run.fragments == start =>
                {
                    run.pages += 1;
                    run.fragments += fragments;
                }
                _ => runs.push(Run { page, pages: 1, start, fragments }),
            }
        }
        runs
    }

    /// Returns whether a write of bytes `from..to` of the file needs the old content of a page. If
    /// this page is not cached, the caller reads it from disk before the write.
    pub(super) fn must_be_read(
        &mut self,
        number: FileNumber,
        page: u64,
        from: u64,
        to: u64,
    ) -> bool {
        let start = page * self.page_size();
        let held_to = self.file_size(number).min(start + self.page_size());
        if held_to <= start || (from <= start && to >= held_to) {
            return false;
        }
        let Some(file) = self.files.get(&number) else { return false };
        let page_fragments = self.volumes[file.volume].layout.page_fragments();
        file.extents.find(page, page_fragments).is_some()
    }
}
