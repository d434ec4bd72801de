//! Reads a store at rest, which no process uses. The store's scheme keeps many records in one file,
//! and is not webcosm. The code of the scheme opens the store on a device that changes nothing.

use crate::failure::Failure;
use crate::store_file::{StoreFile, refusal};
use foxy_base::Instant;
use foxy_device::ReadOnlyDevice;
use foxy_schemes::SchemeSettings;
use foxy_store::map::{FilePart, LayoutView, PlacedRecord, RecordScan, Survey};
use foxy_store::superblock::Superblock;
use foxy_store::webcosm::check::Refused;
use foxy_store::{
    AnewReason, Answer, Ask, Beginning, Observer, OpenStoreError, Record, StepDriver, StoreStatus,
};
use std::time::Duration;

/// Longest simulated time for which a read waits for other reads, in schemes that read in batches.
const MAX_READ_WAIT: Duration = Duration::from_secs(1);

/// The reason why the store cannot be read.
pub enum Unopened {
    /// The store cannot be opened. A start of foxy would fail with the same error.
    Refused(OpenStoreError),
    /// The next start of foxy empties the store.
    Emptied(AnewReason),
}

impl Unopened {
    /// Returns the error of a command that displays a store, with the path of the store's file.
    pub fn failure(self, file: &StoreFile) -> Failure {
        match self {
            Self::Refused(error) => refusal(&file.path, Refused::Unusable(error)),
            Self::Emptied(reason) => {
                Failure::Missed(format!("store {}: {}", file.path.display(), emptied(reason)))
            }
        }
    }
}

/// Returns the text that tells the user that the next start empties the store, and why.
pub fn emptied(reason: AnewReason) -> String {
    format!("the next start empties the store, because {reason}")
}

/// An open store at rest.
pub struct StoreAtRest {
    driver: StepDriver<ReadOnlyDevice>,
}

impl StoreAtRest {
    pub fn open(file: &StoreFile, superblock: &Superblock) -> Result<Self, Unopened> {
        let observer = Observer::default();
        let mut settings = SchemeSettings::with_size(superblock.requested);
        settings.store.record_limit = u32::MAX;
        let scheme = file.scheme().make(&settings, observer.clone());
        let device = file.read_only_device();
        let mut driver = StepDriver::start(scheme, device, observer.clone(), Instant::ZERO);
        driver.run_until_idle();
        if let StoreStatus::Unusable(error) = observer.status.get() {
            return Err(Unopened::Refused(error));
        }
        if let Some(Beginning::Anew(reason)) = observer.beginning.get() {
            return Err(Unopened::Emptied(reason));
        }
        Ok(Self { driver })
    }

    /// Returns the map of the store's live records, which a request could find.
    pub fn survey(&self) -> Survey {
        let Some(layout) = self.layout() else { return Survey::empty() };
        let mut survey = layout.begin_survey();
        while layout.continue_survey(&mut survey) {}
        while survey.finish_some() {}
        survey
    }

    /// Returns the live records of a part of a file, or of all files, in the order of their places.
    pub fn records(&self, within: Option<FilePart>) -> Vec<PlacedRecord> {
        let mut scan = RecordScan::new(within, usize::MAX, 0);
        while self.layout().is_some_and(|layout| layout.continue_scan(&mut scan)) {}
        scan.found.sort_unstable_by_key(|record| (record.file, record.at));
        scan.found
    }

    /// Reads and verifies a record.
    pub fn read(&mut self, record: &PlacedRecord) -> Option<Record> {
        let call = self.driver.ask(Ask::Get(record.key?));
        self.driver.run_until(self.driver.now() + MAX_READ_WAIT);
        let mut answers = self.driver.take_answers().into_iter();
        match answers.find(|(answered, _)| *answered == call) {
            Some((_, Answer::Found(record))) => Some(record),
            _ => None,
        }
    }

    fn layout(&self) -> Option<&dyn LayoutView> {
        self.driver.scheme().layout()
    }
}
