//! Passes log lines from the workers to the thread that writes the log file. Each worker appends to
//! its own bounded buffer, and never waits for the thread. If a buffer is full, foxy drops the line
//! and counts it. The thread writes the lines of all buffers in the order of their times.

use foxy_base::{Instant, WallTime, clock};
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const MAX_BUFFER_BYTES: usize = 4 << 20;
const MAX_WRITE_BYTES: usize = 256 << 10;
/// Interval at which the thread writes the buffers. If the output keeps up, a line waits at most
/// twice this long.
const WRITE_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time in milliseconds that a worker usually needs to append a line after the request's
/// end. The thread holds back newer lines, because an older line may follow.
const APPEND_TIME: u64 = 10;
/// foxy reports a failed write for at least this time. So a disk that alternates between full and
/// not full causes few messages.
const REMEMBERED: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct LogQueue {
    buffers: Vec<Mutex<Lines>>,
    capacity: usize,
    dropped: AtomicU64,
    unwritten: AtomicU64,
    failure: Mutex<Option<FailedWrite>>,
}

/// The last failed write of a log.
#[derive(Debug)]
struct FailedWrite {
    error: String,
    at: Instant,
    /// Whether a later write has worked.
    is_over: bool,
}

/// The number of lines that a failed write lost, and its error.
type LostLines = (usize, std::io::Error);

/// The log lines of one worker that wait to be written.
#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    /// For each line, its time and its end in `text`.
    ends: Vec<(WallTime, usize)>,
}

impl Lines {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn push(&mut self, at: WallTime, line: &[u8]) {
        self.text.extend_from_slice(line);
        self.ends.push((at, self.text.len()));
    }

    /// Returns each log line with its time.
    fn timed(&self) -> impl Iterator<Item = (WallTime, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        starts.zip(&self.ends).map(|(start, (at, end))| (*at, &self.text[start..*end]))
    }
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
            failure: Mutex::default(),
        }
    }

    /// Appends the line of a request that ended at `at`. The line includes its line break. Drops
    /// the line and returns false if the buffer is full.
    pub fn push(&self, at: WallTime, line: &[u8]) -> bool {
        let index = THREAD.with(|thread| thread % self.buffers.len());
        let mut buffer = lock(&self.buffers[index]);
        let has_room = buffer.text.len() + line.len() <= self.capacity;
        if has_room {
            buffer.push(at, line);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }

    /// Returns the number of lines that were dropped because a buffer was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of lines that were lost because the file could not be written.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// Returns the error of the last failed write, until a later write has worked and
    /// [`REMEMBERED`] has passed.
    pub fn write_error(&self, now: Instant) -> Option<String> {
        let failure = lock(&self.failure);
        let failure = failure.as_ref().filter(|it| !it.is_over || now < it.at + REMEMBERED);
        failure.map(|failure| failure.error.clone())
    }

    /// Notes the result of a write at the time `now`. A write without lines says nothing.
    fn note(&self, written: Result<usize, LostLines>, now: Instant) {
        match written {
            Ok(0) => {}
            Ok(_) => {
                if let Some(failure) = &mut *lock(&self.failure) {
                    failure.is_over = true;
                }
            }
            Err((lost, error)) => {
                self.unwritten.fetch_add(lost as u64, Ordering::Relaxed);
                let failure = FailedWrite { error: error.to_string(), at: now, is_over: false };
                *lock(&self.failure) = Some(failure);
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
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
    let mut taken: Vec<Lines> = queue.buffers.iter().map(|_| Lines::default()).collect();
    let mut held = Lines::default();
    loop {
        let stop = requests.stop.load(Ordering::Acquire);
        let reopen = requests.reopen.swap(false, Ordering::AcqRel);
        let is_last = stop || reopen;
        let now = clock::wall().0;
        let until = if is_last { u64::MAX } else { now.saturating_sub(APPEND_TIME) };
        for (buffer, lines) in queue.buffers.iter().zip(&mut taken) {
            std::mem::swap(&mut *lock(buffer), lines);
        }
        let written = write_in_order(&taken, &mut held, WallTime(until), &mut sink);
        queue.note(written, clock::monotonic());
        taken.iter_mut().for_each(Lines::clear);
        if stop {
            return;
        }
        if reopen && let Ok(opened) = open() {
            sink = opened;
        }
        std::thread::park_timeout(WRITE_INTERVAL);
    }
}

/// Writes the lines of all workers before the time `until`, and all `held` lines, in the order of
/// their times. Then holds the newer lines back, until the next call. Returns the number of written
/// lines. If the write fails, all lines count as lost.
fn write_in_order(
    taken: &[Lines],
    held: &mut Lines,
    until: WallTime,
    sink: &mut Sink,
) -> Result<usize, LostLines> {
    let is_due = |(at, _): &(WallTime, &[u8])| at.0 < until.0;
    let due = taken.iter().flat_map(Lines::timed).filter(is_due);
    let mut lines: Vec<(WallTime, &[u8])> = held.timed().chain(due).collect();
    lines.sort_by_key(|(at, _)| at.0);
    let count = lines.len();
    let written = write_all(&lines, sink).map(|()| count).map_err(|error| (count, error));
    held.clear();
    let newer = taken.iter().flat_map(Lines::timed).filter(|line| !is_due(line));
    newer.for_each(|(at, line)| held.push(at, line));
    written
}

fn write_all(lines: &[(WallTime, &[u8])], sink: &mut Sink) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(MAX_WRITE_BYTES, sink);
    lines.iter().try_for_each(|(_, line)| out.write_all(line))?;
    out.flush()
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
            std::thread::spawn(move || queue.push(WallTime(2), b"b\n"))
        };
        queue.push(WallTime(1), b"a\n");
        assert!(other.join().expect("it only pushes"));
        drop(writer);
        let mut lines: Vec<_> = sink.text().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a", "b"]);
    }

    #[test]
    fn the_lines_of_all_workers_are_in_the_order_of_their_times() {
        let worker = |lines: &[(u64, &str)]| {
            let mut all = Lines::default();
            lines.iter().for_each(|(at, line)| all.push(WallTime(*at), line.as_bytes()));
            all
        };
        let (shared, first) = (Shared::default(), worker(&[(1, "a\n"), (5, "d\n")]));
        let second = worker(&[(2, "b\n"), (3, "c\n"), (9, "e\n")]);
        let mut sink: Sink = Box::new(shared.clone());
        let mut held = Lines::default();
        let workers = [first, Lines::default(), second];
        let mut write = |workers: &[Lines], until| {
            write_in_order(workers, &mut held, WallTime(until), &mut sink).expect("written")
        };
        assert_eq!(write(&workers, 6), 4);
        assert_eq!(shared.text(), "a\nb\nc\nd\n");
        // The first worker appended an older line after the thread had taken its buffer.
        let late = worker(&[(8, "late\n"), (12, "f\n")]);
        assert_eq!(write(&[late], 10), 2);
        assert_eq!(shared.text(), "a\nb\nc\nd\nlate\ne\n");
        assert_eq!(write(&[], 10), 1);
        assert_eq!(shared.text(), "a\nb\nc\nd\nlate\ne\nf\n");
    }

    #[test]
    fn a_full_buffer_drops_and_counts_instead_of_waiting() {
        let queue = LogQueue::with_capacity(1, 4);
        let pushed = (0..5).map(|_| queue.push(WallTime(1), b"a\n")).collect::<Vec<_>>();
        assert_eq!(pushed, [true, true, false, false, false]);
        assert_eq!(queue.dropped(), 3);
        assert_eq!(lock(&queue.buffers[0]).text.as_slice(), b"a\na\n");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let queue = Arc::new(LogQueue::new(1));
        for _ in 0..3 {
            queue.push(WallTime(1), b"a\n");
        }
        drop(
            LogWriter::start(queue.clone(), Box::new(Full), opener(Shared::default()))
                .expect("started"),
        );
        assert_eq!(queue.unwritten(), 3);
    }

    #[test]
    fn a_failed_write_is_named_until_later_writes_work() {
        let queue = LogQueue::new(1);
        let full = || Err((2, std::io::ErrorKind::StorageFull.into()));
        let error = |second| queue.write_error(Instant::ZERO + Duration::from_secs(second));
        let note =
            |second, written| queue.note(written, Instant::ZERO + Duration::from_secs(second));
        assert_eq!(error(1), None);
        note(1, full());
        assert_eq!((error(2).as_deref(), queue.unwritten()), (Some("no storage space"), 2));
        note(20, Ok(0));
        assert!(error(60).is_some(), "nothing was written since");
        note(61, full());
        note(62, Ok(1));
        assert!(error(70).is_some(), "it may fail again soon");
        assert_eq!(error(71), None);
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
        queue.push(WallTime(1), b"1\n");
        let writer = LogWriter::start(queue.clone(), Box::new(old.clone()), open).expect("started");
        writer.reopen();
        on_open.recv().expect("reopened");
        queue.push(WallTime(2), b"2\n");
        drop(writer);
        assert_eq!((old.text().as_str(), new.text().as_str()), ("1\n", "2\n"));
    }
}
