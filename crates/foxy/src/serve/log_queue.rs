//! Lines on their way from the workers to a file: a worker appends to a bounded queue of its own, one thread empties
//! them all. A worker never waits for the writer or wakes it; what does not fit is dropped and counted.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Entries one worker may have waiting.
const CAPACITY: usize = 32 * 1024;
/// How often the writer looks; the longest a line waits while the output keeps up.
const EVERY: Duration = Duration::from_millis(50);

/// One worker's entries that wait to be written.
#[derive(Debug)]
pub struct LogQueue<T> {
    pending: Mutex<Vec<T>>,
    capacity: usize,
    dropped: AtomicU64,
}

impl<T> LogQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::with_capacity(CAPACITY)
    }

    fn with_capacity(capacity: usize) -> Self {
        Self { pending: Mutex::new(Vec::new()), capacity, dropped: AtomicU64::new(0) }
    }

    /// Appends an entry, or drops it when the queue is full.
    pub fn push(&self, entry: T) {
        let mut pending = self.lock();
        if pending.len() < self.capacity {
            pending.push(entry);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Entries dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn take(&self, into: &mut Vec<T>) {
        std::mem::swap(&mut *self.lock(), into);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the writer thread shares with whoever commands it.
#[derive(Debug, Default)]
struct Orders {
    stop: AtomicBool,
    reopen: AtomicBool,
    unwritten: AtomicU64,
}

/// Where lines go, opened.
pub type Sink = Box<dyn Write + Send>;
/// Opens the place lines go to.
pub type Opener = Box<dyn Fn() -> std::io::Result<Sink> + Send>;

/// The writer thread.
#[derive(Debug)]
pub struct LogWriter {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl LogWriter {
    /// Starts it. `sink` is written to until a reopening gives another; `format` appends one whole line.
    pub fn start<T: Send + 'static>(
        queues: Vec<Arc<LogQueue<T>>>,
        format: impl Fn(&T, &mut Vec<u8>) + Send + 'static,
        sink: Sink,
        open: Opener,
    ) -> std::io::Result<Self> {
        let orders = Arc::new(Orders::default());
        let shared = Arc::clone(&orders);
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_until_stopped(&queues, format, sink, &open, &shared))?;
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Has it open its output anew, after what is queued now.
    pub fn reopen(&self) {
        self.orders.reopen.store(true, Ordering::Release);
    }

    /// Lines that were queued but could not be written.
    pub fn unwritten(&self) -> u64 {
        self.orders.unwritten.load(Ordering::Relaxed)
    }
}

impl Drop for LogWriter {
    /// Writes what is queued and ends the thread.
    fn drop(&mut self) {
        self.orders.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _panicked_writer_has_nothing_to_hand_over = thread.join();
        }
    }
}

fn write_until_stopped<T>(
    queues: &[Arc<LogQueue<T>>],
    format: impl Fn(&T, &mut Vec<u8>),
    mut sink: Sink,
    open: &Opener,
    orders: &Orders,
) {
    let mut entries = Vec::new();
    let mut lines = Vec::new();
    loop {
        let stop = orders.stop.load(Ordering::Acquire);
        let reopen = orders.reopen.swap(false, Ordering::AcqRel);
        for queue in queues {
            queue.take(&mut entries);
            for entry in entries.drain(..) {
                format(&entry, &mut lines);
            }
        }
        if !lines.is_empty() && sink.write_all(&lines).and_then(|()| sink.flush()).is_err() {
            let lost = lines.iter().filter(|byte| **byte == b'\n').count();
            orders.unwritten.fetch_add(lost as u64, Ordering::Relaxed);
        }
        lines.clear();
        if stop {
            return;
        }
        if reopen && let Ok(opened) = open() {
            sink = opened;
        }
        std::thread::park_timeout(EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("sound").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn line(entry: &u32, out: &mut Vec<u8>) {
        writeln!(out, "{entry}").expect("a Vec takes all");
    }

    fn opener(sink: Shared) -> Opener {
        Box::new(move || Ok(Box::new(sink.clone())))
    }

    #[test]
    fn everything_queued_is_written_before_the_writer_ends() {
        let queue = Arc::new(LogQueue::new());
        let sink = Shared::default();
        let writer =
            LogWriter::start(vec![queue.clone()], line, Box::new(sink.clone()), opener(sink.clone()));
        (0..3).for_each(|number| queue.push(number));
        drop(writer.expect("started"));
        assert_eq!(*sink.0.lock().expect("sound"), b"0\n1\n2\n");
    }

    #[test]
    fn a_full_queue_drops_and_counts_instead_of_waiting() {
        let queue = LogQueue::with_capacity(2);
        (0..5).for_each(|number| queue.push(number));
        assert_eq!(queue.dropped(), 3);
        let mut taken = Vec::new();
        queue.take(&mut taken);
        assert_eq!(taken, [0, 1]);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let queue = Arc::new(LogQueue::new());
        (0..3).for_each(|number| queue.push(number));
        let sink = Shared::default();
        let writer = LogWriter::start(vec![queue], line, Box::new(Full), opener(sink)).expect("started");
        let orders = Arc::clone(&writer.orders);
        drop(writer);
        assert_eq!(orders.unwritten.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn reopening_sends_later_lines_to_the_new_place() {
        let queue = Arc::new(LogQueue::new());
        let (old, new) = (Shared::default(), Shared::default());
        let (opened, on_open) = std::sync::mpsc::channel();
        let target = new.clone();
        let open: Opener = Box::new(move || {
            opened.send(()).expect("the test waits");
            Ok(Box::new(target.clone()))
        });
        queue.push(1);
        let writer =
            LogWriter::start(vec![queue.clone()], line, Box::new(old.clone()), open).expect("started");
        writer.reopen();
        on_open.recv().expect("reopened");
        queue.push(2);
        drop(writer);
        assert_eq!(*old.0.lock().expect("sound"), b"1\n");
        assert_eq!(*new.0.lock().expect("sound"), b"2\n");
    }
}
