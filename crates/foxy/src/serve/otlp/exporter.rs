//! The thread that exports. It collects a batch for a second, sends it, and tries again if the
//! collector does not answer. Meanwhile the queue fills.

use super::batch::{Batch, EncodedBatch};
use super::collector::{Collector, Delivery};
use super::counts::{OtlpCounts, OtlpDrop, OtlpSignal};
use super::queue::{OtlpQueue, Telemetry};
use crate::failure::Failure;
use crate::serve::tls::origin_tls;
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_base::Random;
use foxy_base::random::entropy;
use foxy_proxy::upstream::{OriginTls, Scheme};
use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// Time for which a batch collects spans and log records.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// Number of spans and log records at which a batch is sent at once.
const MAX_BATCH: usize = 512;
/// Number of attempts to send a batch. The pauses between attempts double.
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Time limit for the export of the remaining data when foxy stops.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// Handle of the thread. Drop exports the waiting data, for at most [`FLUSH_TIME`], and ends the
/// thread.
#[derive(Debug)]
pub struct OtlpExporter {
    queue: OtlpQueue,
    counts: Arc<OtlpCounts>,
    /// Ends the thread when dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts to export to the collector of the settings. Returns `None` if the settings name no
/// collector.
pub fn open(settings: &Settings) -> Result<Option<OtlpExporter>, Failure> {
    let Some(server) = settings.operation.otlp.clone() else { return Ok(None) };
    let tls = match server.scheme {
        Scheme::Http => OriginTls::default(),
        Scheme::Https => origin_tls(&settings.network.origin_ca, None)?,
    };
    let exporter = OtlpExporter::start(Collector { server, tls }).map_err(|error| {
        Failure::Failed(format!("cannot start the thread that exports traces: {error}"))
    })?;
    let queue = exporter.queue();
    terminal::pass_on(Box::new(move |level, text| queue.tell(level, text)));
    Ok(Some(exporter))
}

impl OtlpExporter {
    fn start(collector: Collector) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counts = Arc::<OtlpCounts>::default();
        let (queue, receiver) = OtlpQueue::new(Arc::clone(&counts));
        let (stop, stopped) = oneshot::channel();
        let export = Export {
            receiver,
            collector,
            counts: Arc::clone(&counts),
            random: Random::new(entropy()),
            batch: Batch::default(),
            unsent: VecDeque::new(),
            fails: [false; OtlpSignal::ALL.len()],
        };
        let thread = std::thread::Builder::new()
            .name("otlp".into())
            .spawn(move || export.until_stopped(runtime, stopped))?;
        Ok(Self { queue, counts, stop: Some(stop), thread: Some(thread) })
    }

    pub fn queue(&self) -> OtlpQueue {
        self.queue.clone()
    }

    pub fn counts(&self) -> Arc<OtlpCounts> {
        Arc::clone(&self.counts)
    }
}

impl Drop for OtlpExporter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked_thread_has_nothing_to_hand_over = thread.join();
        }
    }
}

struct Export {
    receiver: Receiver<Telemetry>,
    collector: Collector,
    counts: Arc<OtlpCounts>,
    random: Random,
    batch: Batch,
    /// Batches that the collector has not accepted yet.
    unsent: VecDeque<EncodedBatch>,
    /// Whether the last attempt failed, for each signal. Some collectors take only traces.
    fails: [bool; OtlpSignal::ALL.len()],
}

impl Export {
    fn until_stopped(mut self, runtime: Runtime, stopped: oneshot::Receiver<()>) {
        runtime.block_on(async {
            tokio::select! {
                () = self.export() => {}
                _ = stopped => {}
            }
            let _late = timeout(FLUSH_TIME, self.flush()).await;
        });
        // Does not wait for the runtime's threads, because a name look-up may still be running.
        runtime.shutdown_background();
    }

    async fn export(&mut self) {
        loop {
            self.take_next().await;
            let _is_late = timeout(BATCH_TIME, self.fill()).await;
            self.unsent.extend(self.batch.encode());
            self.deliver(ATTEMPTS).await;
        }
    }

    async fn fill(&mut self) {
        while self.batch.len() < MAX_BATCH {
            self.take_next().await;
        }
    }

    async fn take_next(&mut self) {
        match self.receiver.recv().await {
            Some(item) => self.batch.add(item, &mut self.random),
            None => pending().await,
        }
    }

    /// Sends all waiting spans and log records, with one attempt for each batch.
    async fn flush(&mut self) {
        while let Ok(item) = self.receiver.try_recv() {
            self.batch.add(item, &mut self.random);
        }
        self.unsent.extend(self.batch.encode());
        self.deliver(1).await;
    }

    async fn deliver(&mut self, attempts: u32) {
        while let Some(first) = self.unsent.front().cloned() {
            let verdict = self.send(&first, attempts).await;
            self.unsent.pop_front();
            let EncodedBatch { signal, count, .. } = first;
            match verdict {
                Delivery::Accepted { refused } => {
                    self.counts.exported(signal, count - refused);
                    self.counts.dropped(signal, OtlpDrop::Refused, refused);
                }
                Delivery::Refused(_) => self.counts.dropped(signal, OtlpDrop::Refused, count),
                Delivery::Again(..) => self.counts.dropped(signal, OtlpDrop::Undelivered, count),
            }
        }
    }

    async fn send(&mut self, batch: &EncodedBatch, attempts: u32) -> Delivery {
        let mut pause = FIRST_PAUSE;
        for _ in 1..attempts {
            match self.attempt(batch).await {
                Delivery::Again(_, after) => sleep(after.unwrap_or(pause).min(LONGEST_PAUSE)).await,
                verdict => return verdict,
            }
            pause *= 2;
        }
        self.attempt(batch).await
    }

    /// Sends a batch, and tells the operator when failures begin and end.
    async fn attempt(&mut self, batch: &EncodedBatch) -> Delivery {
        let verdict = self.collector.send(batch).await;
        let (server, what) = (&self.collector.server, batch.signal.plural());
        let fails = !matches!(verdict, Delivery::Accepted { .. });
        let failed = std::mem::replace(&mut self.fails[batch.signal as usize], fails);
        match &verdict {
            Delivery::Refused(why) | Delivery::Again(why, _) if !failed => {
                let text = format!(
                    "foxy: the collector {server} (otlp): {why}; until it takes {what}, foxy drops \
                     them"
                );
                terminal::report(Level::Warning, &text);
            }
            Delivery::Accepted { .. } if failed => {
                let text = format!("foxy: over: the collector {server} (otlp) takes {what} again");
                terminal::report(Level::Info, &text);
            }
            _ => {}
        }
        verdict
    }
}
