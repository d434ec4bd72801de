//! The clients of the soak test, which kills and restarts foxy many times. Most requests are plain
//! GETs. Others are reloads, two overlapping reloads, ranges, HEADs, unsafe requests and purges.
//! Some clients close the connection early. Each response is judged when it arrives.

use crate::ledger::{Ack, Broken, Holds, Ledger, Seen, Way, count, locked};
use crate::origin::Origin;
use crate::pages::{LANGUAGES, Pattern, below, tag};
use crate::wire::{Body, Connection, Head, PATIENCE};
use foxy_base::clock;
use foxy_base::random::Random;
use foxy_base::time::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// The addresses of foxy, and the number of its current run (from one start to its end).
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub run: u64,
    /// Address of the proxy and address of the admin server. `None` while foxy is not running.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// Whether the test has asked foxy to stop. Requests may fail after that.
    pub ending: bool,
}

/// State that all clients share.
pub struct Shared {
    pub ledger: Arc<Ledger>,
    pub pattern: Arc<Pattern>,
    pub origin: Origin,
    pub place: Mutex<Place>,
    pub over: AtomicBool,
    /// Number of pages that clients request outside storms, which are bursts of thousands of
    /// requests. Pages from this number on are for storms.
    pub pages: usize,
}

impl Shared {
    pub fn place(&self) -> Place {
        *locked(&self.place)
    }

    /// Returns whether the foxy of run `run` still serves and the test has not asked it to stop.
    fn is_up(&self, run: u64) -> bool {
        let place = self.place();
        place.run == run && !place.ending && place.addresses.is_some()
    }
}

/// A request for a page.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    pub page: usize,
    pub language: usize,
    pub method: Method,
    /// Additional header lines, each with its line end. The other fields of this struct determine
    /// the rest of the request.
    pub fields: String,
    /// Whether the request asks foxy to fetch a new response (`Cache-Control: no-cache`).
    pub reload: bool,
    /// Number of body bytes after which the client closes the connection. `None` if it reads the
    /// whole body.
    pub leaves: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
}

impl Method {
    const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
        }
    }
}

/// A client with its own connection and its own random numbers.
pub struct Client {
    pub shared: Arc<Shared>,
    random: Random,
    connection: Option<Connection>,
}

impl Client {
    pub fn new(shared: &Arc<Shared>, seed: u64) -> Self {
        Self { shared: Arc::clone(shared), random: Random::new(seed), connection: None }
    }

    /// Sends requests until the soak test ends.
    pub fn run(mut self) {
        while !self.shared.over.load(Ordering::SeqCst) {
            if self.shared.place().addresses.is_none() {
                sleep(Duration::from_millis(2));
                continue;
            }
            self.step();
            sleep(Duration::from_millis(self.random.below(12)));
        }
    }

    fn step(&mut self) {
        let page = below(&mut self.random, self.shared.pages);
        let language = below(&mut self.random, LANGUAGES.len());
        let mut ask = Ask { page, language, ..Ask::default() };
        let quiet = self.shared.ledger.pages[page].quiet;
        match self.random.below(if quiet { 70 } else { 100 }) {
            0..62 => {}
            62..66 => {
                ask.method = Method::Head;
            }
            66..70 => ask.leaves = Some(self.random.below(30_000)),
            70..78 => ask.reload = true,
            78..84 => return self.overlap(page, language),
            84..90 => ask.fields = self.range(page),
            90..95 => ask.method = Method::Post,
            95..97 => return self.purge(page, true),
            _ => return self.purge(page, false),
        }
        if !quiet {
            ask.fields += &self.manner();
        }
        if ask.reload {
            ask.fields += ["Cache-Control: no-cache\r\n", "Cache-Control: max-age=0\r\n"]
                [below(&mut self.random, 2)];
        }
        self.ask(&ask);
    }

    /// Chooses at random how the origin shall respond, if foxy forwards the request. Returns header
    /// lines for the origin.
    fn manner(&mut self) -> String {
        let mut fields = String::new();
        if self.random.chance(0.4) {
            fields += "Soak-Bump: 1\r\n";
        }
        fields += &match self.random.below(20) {
            0 => format!("Soak-Delay: {}\r\n", self.random.below(400)),
            1 => format!("Soak-Slow: {}\r\n", self.random.below(1500)),
            2 => format!("Soak-Break: {}\r\n", self.random.below(20_000)),
            _ => String::new(),
        };
        fields
    }

    fn range(&mut self, page: usize) -> String {
        let length = self.shared.ledger.pages[page].length(0, 0);
        let from = self.random.below(length);
        let end = from + self.random.below(length / 2 + 1);
        format!("Range: bytes={from}-{end}\r\n")
    }

    /// Sends a request on the open connection, or on a new connection. Does nothing if foxy does
    /// not run.
    pub fn ask(&mut self, ask: &Ask) {
        let place = self.shared.place();
        let Some((address, _)) = place.addresses else { return };
        if self.connection.as_ref().is_some_and(|open| open.run != place.run || !open.reusable) {
            self.connection = None;
        }
        if self.connection.is_none() {
            self.connection = Connection::open(address, place.run).ok();
        }
        let Some(mut connection) = self.connection.take() else { return };
        if exchange(&self.shared, &mut connection, ask).is_ok() {
            self.connection = Some(connection);
        }
    }

    /// Reloads two variants of a page at the same time. The second reload begins later but ends
    /// first.
    fn overlap(&mut self, page: usize, language: usize) {
        let other = (language + 1 + below(&mut self.random, 2)) % LANGUAGES.len();
        let [one, two] = [language, other].map(|language| Ask { page, language, ..Ask::default() });
        self.ask(&one);
        self.ask(&two);
        let reload = |ask: &Ask, fields: &str| Ask {
            reload: true,
            fields: format!("Cache-Control: no-cache\r\nSoak-Bump: 1\r\n{fields}"),
            ..ask.clone()
        };
        let delay = 60 + self.random.below(200);
        let first = reload(&one, &format!("Soak-Delay: {delay}\r\n"));
        let second = reload(&two, "");
        let shared = Arc::clone(&self.shared);
        let slower = std::thread::spawn(move || Client::new(&shared, 0).ask(&first));
        sleep(Duration::from_millis(10 + self.random.below(30)));
        self.ask(&second);
        slower.join().expect("a client that asks once");
        self.ask(&one);
        self.ask(&two);
    }

    /// Purges a page through the proxy or the admin server. After the confirmation, foxy must not
    /// serve any version that the origin sent before the purge.
    fn purge(&mut self, page: usize, through_proxy: bool) {
        let place = self.shared.place();
        let Some((proxy, admin)) = place.addresses else { return };
        let url = self.shared.origin.url(page);
        let hard = self.random.chance(0.3);
        let text = if through_proxy {
            let host = self.shared.origin.address;
            let hard = if hard { "Foxy-Purge: hard\r\n" } else { "" };
            format!("PURGE {url} HTTP/1.1\r\nHost: {host}\r\n{hard}\r\n")
        } else {
            let hard = if hard { "&hard" } else { "" };
            format!(
                "POST /purge?url={url}{hard} HTTP/1.1\r\nHost: {admin}\r\nContent-Length: 0\r\n\r\n"
            )
        };
        let begun = clock::monotonic();
        let to = if through_proxy { proxy } else { admin };
        let status = Connection::open(to, place.run).and_then(|mut connection| {
            connection.send(&text)?;
            connection.head()
        });
        let status = status.map(|head| head.status).unwrap_or(0);
        let mut book = self.shared.ledger.book(page);
        book.note(format!("client: purge (through proxy {through_proxy}, hard {hard}): {status}"));
        if status == 200 {
            book.purged(begun, clock::monotonic());
            count(&self.shared.ledger.counts.purges, 1);
        }
    }
}

/// Sends a request for a page, and judges the response. An error ends the connection.
fn exchange(shared: &Shared, connection: &mut Connection, ask: &Ask) -> io::Result<()> {
    let (url, host) = (shared.origin.url(ask.page), shared.origin.address);
    let language = match LANGUAGES[ask.language] {
        "" => String::new(),
        language => format!("Accept-Language: {language}\r\n"),
    };
    let length = if ask.method == Method::Post { "Content-Length: 0\r\n" } else { "" };
    let (method, fields) = (ask.method.name(), &ask.fields);
    let text = format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\n{language}{length}{fields}\r\n");
    let begun = clock::monotonic();
    let result = connection.send(&text).and_then(|()| connection.head());
    let head = match result {
        Ok(head) => head,
        Err(error) => {
            let waited = clock::monotonic().since(begun) >= PATIENCE;
            if waited && shared.is_up(connection.run) {
                shared.ledger.found(Broken::Dead, ask.page, &format!("no answer to {ask:?}"));
            }
            return Err(error);
        }
    };
    let answer = Answer { shared, ask, head, begun, run: connection.run };
    if ask.method == Method::Post {
        answer.after_post(connection)
    } else {
        answer.after_get(connection)
    }
}

/// A response whose head has arrived.
struct Answer<'a> {
    shared: &'a Shared,
    ask: &'a Ask,
    head: Head,
    begun: Instant,
    run: u64,
}

impl Answer<'_> {
    fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    fn after_post(self, connection: &mut Connection) -> io::Result<()> {
        connection.skip(&self.head)?;
        if self.head.status != 200 {
            count(&self.ledger().counts.refused, 1);
            return Ok(());
        }
        let ended = clock::monotonic();
        let versions = self
            .head
            .field("soak-versions")
            .split(',')
            .map(|version| version.parse().expect("a number"));
        let mut book = self.ledger().book(self.ask.page);
        for (shelf, version) in book.shelves.iter_mut().zip(versions) {
            shelf.acknowledge(Ack { version, begun: self.begun, ended, holds: Holds::Always });
        }
        book.note(format!("client: run {}: the unsafe request is answered", self.run));
        count(&self.ledger().counts.unsafe_requests, 1);
        Ok(())
    }

    fn after_get(self, connection: &mut Connection) -> io::Result<()> {
        let status = self.head.status;
        let (Some(version), Some(variant)) =
            (self.head.number("soak-version"), self.head.number("soak-variant"))
        else {
            return self.without_version(connection);
        };
        let page = &self.ledger().pages[self.ask.page];
        let way = way(self.head.field("cache-status"));
        let seen = Seen {
            begun: self.begun,
            version,
            way,
            run: self.run,
            reload: self.ask.fields.contains("no-cache"),
        };
        let variant = usize::try_from(variant).unwrap_or(usize::MAX);
        if variant != page.variant(self.ask.language) || !matches!(status, 200 | 206) {
            self.wrong(&format!("variant {variant}, status {status}"));
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.stored_head(variant, version, way);
        let (from, length) = self.head.range().unwrap_or((0, page.length(variant, version)));
        if length != page.length(variant, version) {
            self.wrong(&format!("says the whole has {length} bytes"));
        }
        let body = if self.ask.method == Method::Head {
            Body::Whole(0)
        } else {
            let most = self.ask.leaves.unwrap_or(u64::MAX / 2);
            let tag = tag(page.number, variant, version);
            connection.body(&self.head, &self.shared.pattern, tag, from, most)
        };
        self.note(version, way, body);
        self.ledger().judge(self.ask.page, self.ask.language, seen);
        match body {
            Body::Wrong(at) => {
                self.wrong(&format!("a wrong byte about {at}"));
                Err(io::ErrorKind::InvalidData.into())
            }
            Body::Cut => {
                count(&self.ledger().counts.broken_off, 1);
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Body::Whole(bytes) => {
                self.whole(way, bytes);
                if status == 200 && self.ask.method == Method::Get {
                    if bytes != length {
                        self.wrong(&format!("ends after {bytes} bytes of {length}"));
                    }
                    self.acknowledge(variant, version, way);
                }
                Ok(())
            }
        }
    }

    fn without_version(&self, connection: &mut Connection) -> io::Result<()> {
        self.ledger().book(self.ask.page).note(format!(
            "client: run {}: {:?}: status {} {}",
            self.run,
            self.ask,
            self.head.status,
            self.head.field("proxy-status")
        ));
        match self.head.status {
            // 416 means that the range begins after the end of the current version.
            416 | 500..600 => {
                count(&self.ledger().counts.refused, 1);
                connection.skip(&self.head)
            }
            status => {
                self.wrong(&format!("status {status} without a version"));
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }

    /// Records that foxy will store a reload's response, as the response's head says.
    fn stored_head(&self, variant: usize, version: u64, way: Way) {
        let stored = self.head.field("cache-status").contains("; stored");
        if self.ask.reload && way == Way::Fetched && stored {
            let holds = Holds::AfterRun(self.run);
            let ack = Ack { version, begun: self.begun, ended: clock::monotonic(), holds };
            self.ledger().book(self.ask.page).shelves[variant].acknowledge(ack);
        }
    }

    fn acknowledge(&self, variant: usize, version: u64, way: Way) {
        let ended = clock::monotonic();
        let mut book = self.ledger().book(self.ask.page);
        let shelf = &mut book.shelves[variant];
        if way == Way::Fetched {
            shelf.acknowledge(Ack { version, begun: self.begun, ended, holds: Holds::Always });
        } else {
            shelf.acknowledge_reused(version, ended);
        }
    }

    fn whole(&self, way: Way, bytes: u64) {
        let counts = &self.ledger().counts;
        count(&counts.whole, 1);
        count(&counts.bytes, bytes);
        count(&counts.hits, u64::from(way == Way::Hit));
        count(&counts.joined, u64::from(way == Way::Joined));
        count(&counts.reloads, u64::from(self.ask.reload));
        count(
            &counts.renewed,
            u64::from(self.head.field("cache-status").contains("fwd-status=304")),
        );
    }

    fn note(&self, version: u64, way: Way, body: Body) {
        let begun = crate::ledger::seconds(self.begun);
        let line = self.ask.fields.replace("\r\n", "; ");
        self.ledger().book(self.ask.page).note(format!(
            "client: run {} since {begun:.4}: {:?} {:?} {line}: version {version} {way:?} {body:?} \
             [{}]",
            self.run,
            self.ask.method,
            LANGUAGES[self.ask.language],
            self.head.field("cache-status")
        ));
    }

    fn wrong(&self, what: &str) {
        let text = format!("run {}: {:?}: {what}: {:?}", self.run, self.ask, self.head);
        self.ledger().found(Broken::Wrong, self.ask.page, &text);
    }
}

fn way(status: &str) -> Way {
    if status.contains("; hit") {
        Way::Hit
    } else if status.contains("; collapsed") {
        Way::Joined
    } else {
        Way::Fetched
    }
}
