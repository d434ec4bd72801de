//! The one processor, for what takes it long enough to count: searching directories, one operation
//! after the other.

use super::volume::OperationId;
use foxy_base::Instant;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Processor {
    /// When each is done, in order.
    queue: VecDeque<(Instant, OperationId)>,
}

impl Processor {
    /// Works for an operation once it is through with those before.
    pub(super) fn begin(&mut self, now: Instant, work: Duration, operation: OperationId) {
        let start = self.next_free(now);
        self.queue.push_back((start + work, operation));
    }

    fn next_free(&self, now: Instant) -> Instant {
        self.queue.back().map_or(now, |&(finish, _)| finish)
    }

    /// When it will next be done with an operation.
    pub(super) fn next_finish(&self) -> Option<Instant> {
        self.queue.front().map(|&(finish, _)| finish)
    }

    /// The operation that it is done with at that time.
    pub(super) fn finish(&mut self, at: Instant) -> Option<OperationId> {
        let due = self.next_finish() == Some(at);
        due.then(|| self.queue.pop_front()).flatten().map(|(_, operation)| operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_works_for_one_after_the_other() {
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
