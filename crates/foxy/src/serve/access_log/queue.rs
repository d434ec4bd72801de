//! Passes log lines from the workers to the thread that writes the log file. Each worker appends to
//! its own bounded buffer, and never waits for the thread. If a buffer is full, foxy drops the line
//! and counts it.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const MAX_BUFFER_BYTES: usize = 4 << 20;
/// Interval at which the thread writes the buffers. A line waits at most this long if the output
/// keeps up.
const WRITE_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct LogQueue {
    buffers: Vec<Mutex<Vec<u8>>>,
    capacity: usize,
    dropped: AtomicU64,
    unwritten: AtomicU64,
}

/// Number of threads that have appended lines so far. The next new thread gets this number, which
/// selects its buffer.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

impl LogQueue {
    pub fn new(workers: usize) -> Self {
        Self::with_capacity(workers, MAX_BUFFER_BYTES)
    }

    fn with_capacity(workers: usize, capacity: usize) -> Self {
        Self {
            buffers: (0..workers.max(1)).map(|_| Mutex::default()).collect(),
            capacity,
            dropped: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
        }
    }

    /// Appends a line that includes its line break. Drops the line if the buffer is full.
    pub fn push(&self, line: &[u8]) {
        let index = THREAD.with(|thread| thread % self.buffers.len());
        let mut buffer = lock(&self.buffers[index]);
        if buffer.len() + line.len() <= self.capacity {
            buffer.extend_from_slice(line);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of lines that were dropped because a buffer was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of lines that were lost because the file could not be written.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }
}

fn lock(buffer: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct WriterRequests {
    stop: AtomicBool,
    reopen: AtomicBool,
}

pub type Sink = Box<dyn Write + Send>;
/// Function that opens the log's output again, and returns the new output.
pub type Opener = Box<dyn Fn() -> std::io::Result<Sink> + Send>;

/// Handle of the thread that writes the log. Drop writes the remaining lines and ends the thread.
#[derive(Debug)]
pub struct LogWriter {
    requests: Arc<WriterRequests>,
    thread: Option<JoinHandle<()>>,
}

impl LogWriter {
    /// Starts the thread, which writes to `sink`. After [`LogWriter::reopen`], it writes to the
    /// output that `open` returns.
    pub fn start(queue: Arc<LogQueue>, sink: Sink, open: Opener) -> std::io::Result<Self> {
        let requests = Arc::new(WriterRequests::default());
        let shared = Arc::clone(&requests);
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_until_stopped(&queue, sink, &open, &shared))?;
        Ok(Self { requests, thread: Some(thread) })
    }

    /// Tells the thread to open its output again. The thread first writes the lines that are
    /// already in the buffers.
    pub fn reopen(&self) {
        self.requests.reopen.store(true, Ordering::Release);
    }
}

impl Drop for LogWriter {
    /// Writes the remaining lines, and waits for the end of the thread.
    fn drop(&mut self) {
        self.requests.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _panicked_writer_has_nothing_to_hand_over = thread.join();
        }
    }
}

fn write_until_stopped(queue: &LogQueue, mut sink: Sink, open: &Opener, requests: &WriterRequests) {
    let mut lines = Vec::new();
    loop {
        let stop = requests.stop.load(Ordering::Acquire);
        let reopen = requests.reopen.swap(false, Ordering::AcqRel);
        for buffer in &queue.buffers {
            std::mem::swap(&mut *lock(buffer), &mut lines);
            if sink.write_all(&lines).and_then(|()| sink.flush()).is_err() {
                let lost = lines.iter().filter(|byte| **byte == b'\n').count();
                queue.unwritten.fetch_add(lost as u64, Ordering::Relaxed);
            }
            lines.clear();
        }
        if stop {
            return;
        }
        if reopen && let Ok(opened) = open() {
            sink = opened;
        }
        std::thread::park_timeout(WRITE_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Shared {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("sound").clone()).expect("ASCII")
        }
    }

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

    fn opener(sink: Shared) -> Opener {
        Box::new(move || Ok(Box::new(sink.clone())))
    }

    #[test]
    fn everything_queued_is_written_before_the_writer_ends() {
        let queue = Arc::new(LogQueue::new(2));
        let sink = Shared::default();
        let writer = LogWriter::start(queue.clone(), Box::new(sink.clone()), opener(sink.clone()));
        let writer = writer.expect("started");
        let other = {
            let queue = queue.clone();
            std::thread::spawn(move || queue.push(b"b\n"))
        };
        queue.push(b"a\n");
        other.join().expect("it only pushes");
        drop(writer);
        let mut lines: Vec<_> = sink.text().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a", "b"]);
    }

    #[test]
    fn a_full_buffer_drops_and_counts_instead_of_waiting() {
        let queue = LogQueue::with_capacity(1, 4);
        (0..5).for_each(|_| queue.push(b"a\n"));
        assert_eq!(queue.dropped(), 3);
        assert_eq!(lock(&queue.buffers[0]).as_slice(), b"a\na\n");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let queue = Arc::new(LogQueue::new(1));
        (0..3).for_each(|_| queue.push(b"a\n"));
        drop(
            LogWriter::start(queue.clone(), Box::new(Full), opener(Shared::default()))
                .expect("started"),
        );
        assert_eq!(queue.unwritten(), 3);
    }

    #[test]
    fn reopening_sends_later_lines_to_the_new_place() {
        let queue = Arc::new(LogQueue::new(1));
        let (old, new) = (Shared::default(), Shared::default());
        let (opened, on_open) = std::sync::mpsc::channel();
        let target = new.clone();
        let open: Opener = Box::new(move || {
            opened.send(()).expect("the test waits");
            Ok(Box::new(target.clone()))
        });
        queue.push(b"1\n");
        let writer = LogWriter::start(queue.clone(), Box::new(old.clone()), open).expect("started");
        writer.reopen();
        on_open.recv().expect("reopened");
        queue.push(b"2\n");
        drop(writer);
        assert_eq!((old.text().as_str(), new.text().as_str()), ("1\n", "2\n"));
    }
}
