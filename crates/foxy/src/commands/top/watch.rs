//! Asks a running foxy for the data of its dashboard, in a thread of its own.

use crate::commands::admin_client::AdminClient;
use crate::failure::Failure;
use crate::signals::Signals;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Number of intervals whose request rates the screen shows.
const MAX_RATES: usize = 60;
/// Longest time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The data of a running foxy at one time, from one query (a look).
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Counters, gauges and recent traffic.
    pub live: Value,
    /// The number of the first store that has a map, and its map.
    pub map: Option<(usize, Value)>,
}

/// The two newest looks (queries of a running foxy), and the rates of earlier intervals.
#[derive(Debug, Default)]
pub struct Looks {
    /// Address of the admin server.
    pub address: String,
    pub earlier: Option<Look>,
    pub last: Option<Look>,
    /// Requests per second in each interval between two looks (queries of foxy), oldest first.
    pub rates: VecDeque<u64>,
    /// The reason why the last query of foxy failed. `None` if it succeeded.
    pub lost: Option<String>,
}

impl Looks {
    pub fn new(address: String) -> Self {
        Self { address, ..Self::default() }
    }

    pub fn add(&mut self, look: Look) {
        self.lost = None;
        // After a restart of foxy, the earlier counts belong to another process.
        let started = |look: &Look| look.live["started_ms"].as_u64();
        let last = self.last.replace(look);
        self.earlier = last.filter(|it| Some(started(it)) == self.last.as_ref().map(started));
        if let Some(rate) = self.growth("requests") {
            if self.rates.len() >= MAX_RATES {
                self.rates.pop_front();
            }
            self.rates.push_back(rate.round() as u64);
        }
    }

    /// Returns the seconds between the two newest looks (queries of foxy).
    pub fn seconds(&self) -> Option<f64> {
        let time = |look: &Look| look.live["now_ms"].as_f64();
        let (earlier, last) = (time(self.earlier.as_ref()?)?, time(self.last.as_ref()?)?);
        Some(((last - earlier) / 1000.0).max(0.001))
    }

    /// Returns by how much a counter grew per second between the two newest looks (queries of
    /// foxy).
    pub fn growth(&self, counter: &str) -> Option<f64> {
        let count = |look: &Look| look.live["counters"][counter].as_f64();
        let grown = count(self.last.as_ref()?)? - count(self.earlier.as_ref()?)?;
        Some(grown.max(0.0) / self.seconds()?)
    }
}

/// A message for the thread that draws.
pub enum News {
    Look(Box<Look>),
    /// The server did not answer. The text is the reason.
    Lost(String),
    /// A signal ends the command.
    Stop,
}

/// Receives news from two threads: one queries foxy, the other waits for signals.
pub struct Watch(Receiver<News>);

impl Watch {
    /// Starts the threads that query foxy and wait for signals. They end with the process.
    pub fn start(client: AdminClient, interval: Duration) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(1);
        let stop = sender.clone();
        let client = client.patient(PATIENCE);
        let looking = move || keep_looking(&client, interval, &sender);
        std::thread::Builder::new().name("looks".into()).spawn(looking)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut signals = {
            let _inside = runtime.enter();
            Signals::listen()?
        };
        let waiting = move || {
            runtime.block_on(signals.next());
            // The error is ignored, because the command may have ended.
            let _ = stop.send(News::Stop);
        };
        std::thread::Builder::new().name("signals".into()).spawn(waiting)?;
        Ok(Self(receiver))
    }

    /// Returns the next message, if any.
    pub fn news(&self) -> Option<News> {
        self.0.try_recv().ok()
    }
}

fn keep_looking(client: &AdminClient, interval: Duration, sender: &SyncSender<News>) {
    loop {
        let news = match look(client) {
            Ok(look) => News::Look(Box::new(look)),
            Err(failure) => News::Lost(failure.to_string()),
        };
        if sender.send(news).is_err() {
            return;
        }
        std::thread::sleep(interval);
    }
}

/// Asks a running foxy for its data.
pub fn look(client: &AdminClient) -> Result<Look, Failure> {
    let live = client.ask_for_json("/data/live")?;
    let stores = live["stores"].as_array().map_or(&[][..], Vec::as_slice);
    let map = match stores.iter().position(|store| store["has_map"] == true) {
        Some(store) => Some((store, client.ask_for_json(&format!("/data/map?store={store}"))?)),
        None => None,
    };
    Ok(Look { live, map })
}
