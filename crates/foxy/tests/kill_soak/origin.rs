//! The origin of the soak test, which kills and restarts foxy many times. Each connection has a
//! thread. Header fields of a request tell the origin how to respond: late, slowly, with a new
//! version, or truncated. Some responses wait until the test releases them.

use crate::ledger::{Book, Ledger};
use crate::pages::{LANGUAGES, Page, Pattern, Validator, tag};
use foxy_base::clock;
use foxy_base::time::WallTime;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Body of every URL that clients request in a storm, a burst of thousands of requests.
const STORM: &[u8] = b"a page among thousands\n";

/// Longest time for which the origin holds a response.
const HELD: Duration = Duration::from_secs(60);

/// `Last-Modified` of the first version (0) of each page, in seconds since 1970.
const CHANGED: u64 = 1_577_836_800;

#[derive(Clone)]
pub struct Origin {
    pub address: SocketAddr,
    /// While this is set, the origin stops in the middle of each response to a request with
    /// `Soak-Hold`.
    pub holding: Arc<AtomicBool>,
}

impl Origin {
    pub fn start(ledger: &Arc<Ledger>, pattern: &Arc<Pattern>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        let origin = Self { address, holding: Arc::default() };
        let (started, ledger, pattern) = (origin.clone(), Arc::clone(ledger), Arc::clone(pattern));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let holding = Arc::clone(&origin.holding);
                let server =
                    Server { ledger: Arc::clone(&ledger), pattern: Arc::clone(&pattern), holding };
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        started
    }

    pub fn url(&self, page: usize) -> String {
        format!("http://{}/p/{page}", self.address)
    }
}

/// A request that the origin received.
pub struct Request {
    pub method: String,
    pub path: String,
    fields: BTreeMap<String, String>,
}

impl Request {
    /// Reads a request. Returns `None` at the end of the connection.
    fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut fields = BTreeMap::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let request = Self { method, path, fields };
        let body = request.number("content-length").unwrap_or(0);
        io::copy(&mut reader.by_ref().take(body), &mut io::sink()).ok()?;
        Some(request)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    fn pause(&self, name: &str) -> Duration {
        Duration::from_millis(self.number(name).unwrap_or(0))
    }

    /// Returns the requested range of a body of `length` bytes, as its start and exclusive end.
    /// Returns `None` without a valid range.
    fn range(&self, length: u64) -> Option<(u64, u64)> {
        let (from, last) = self.field("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let from: u64 = from.parse().ok()?;
        let end = last.parse().map_or(length, |last: u64| (last + 1).min(length));
        (from < end).then_some((from, end))
    }

    fn language(&self) -> usize {
        let asked = self.field("accept-language").unwrap_or("");
        LANGUAGES.iter().position(|language| *language == asked).unwrap_or(0)
    }
}

/// A response for a page. The origin chooses it while it holds the lock of the page's records, and
/// sends it afterwards.
struct Answer {
    head: String,
    tag: u64,
    /// Start and exclusive end of the bytes to send. Empty for HEAD and for a 304.
    part: (u64, u64),
    chunked: bool,
}

struct Server {
    ledger: Arc<Ledger>,
    pattern: Arc<Pattern>,
    holding: Arc<AtomicBool>,
}

impl Server {
    fn serve(&self, stream: &TcpStream) {
        let _only_slower = stream.set_nodelay(true);
        let mut reader = BufReader::new(stream);
        while let Some(request) = Request::read(&mut reader) {
            // An error ends the connection. A response that is truncated on purpose also returns an
            // error.
            if self.answer(&request, stream).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request, mut stream: &TcpStream) -> io::Result<()> {
        if request.path.starts_with("/s/") {
            let head = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {}\r\n\r\n",
                STORM.len()
            );
            return stream.write_all(&[head.as_bytes(), STORM].concat());
        }
        let number =
            request.path.strip_prefix("/p/").and_then(|number| number.parse::<usize>().ok());
        let Some(page) = number.and_then(|number| self.ledger.pages.get(number)) else {
            return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        };
        let before = request.pause("soak-delay");
        if request.method == "POST" {
            let versions = self.change(page);
            sleep(before);
            let head = format!(
                "HTTP/1.1 200 OK\r\nSoak-Versions: {versions}\r\nContent-Length: 0\r\n\r\n"
            );
            return stream.write_all(head.as_bytes());
        }
        let answer = decide(page, request, &mut self.ledger.book(page.number));
        sleep(before);
        stream.write_all(answer.head.as_bytes())?;
        self.body(request, &answer, stream)
    }

    /// Creates a new version of all variants of a page, as an unsafe request does. Returns the
    /// versions as text for the client.
    fn change(&self, page: &Page) -> String {
        let mut book = self.ledger.book(page.number);
        book.shelves.iter_mut().for_each(|shelf| shelf.version += 1);
        let versions: Vec<String> =
            book.shelves.iter().map(|shelf| shelf.version.to_string()).collect();
        let versions = versions.join(",");
        book.note(format!("origin: an unsafe request; versions are {versions} now"));
        versions
    }

    fn body(&self, request: &Request, answer: &Answer, mut stream: &TcpStream) -> io::Result<()> {
        let (mut at, end) = answer.part;
        let breaks = request.number("soak-break").filter(|_| request.field("range").is_none());
        let middle = at + (end - at) / 2;
        let slow = request.pause("soak-slow") / 8;
        let holds = request.field("soak-hold").is_some();
        while at < end {
            if breaks.is_some_and(|breaks| at >= breaks) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let stop =
                [Some(end), breaks, (at < middle).then_some(middle)].into_iter().flatten().min();
            let mut piece = self.pattern.piece(answer.tag, at, stop.unwrap_or(end) - at);
            if !slow.is_zero() {
                piece = &piece[..piece
                    .len()
                    .min(usize::try_from((end - answer.part.0) / 8 + 1).expect("small"))];
                sleep(slow.min(Duration::from_millis(200)));
            }
            if answer.chunked {
                let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
                stream.write_all(&chunk)?;
            } else {
                stream.write_all(piece)?;
            }
            at += piece.len() as u64;
            if at == middle && holds {
                self.hold();
            }
        }
        if answer.chunked { stream.write_all(b"0\r\n\r\n") } else { Ok(()) }
    }

    fn hold(&self) {
        let begun = clock::monotonic();
        while self.holding.load(Ordering::SeqCst) && clock::monotonic().since(begun) < HELD {
            sleep(Duration::from_millis(5));
        }
    }
}

/// Chooses the response to a request for a page.
fn decide(page: &Page, request: &Request, book: &mut Book) -> Answer {
    let variant = page.variant(request.language());
    let shelf = &mut book.shelves[variant];
    shelf.version += u64::from(request.field("soak-bump").is_some());
    shelf.hand_out(clock::monotonic());
    let version = shelf.version;
    let (length, etag) = (page.length(variant, version), etag(page.number, variant, version));
    let changed = WallTime::from_seconds(CHANGED + version);
    let current = match page.validator {
        Validator::Nothing => false,
        Validator::Tag => request.field("if-none-match").is_some_and(|tags| tags.contains(&etag)),
        Validator::Date => request.field("if-modified-since") == Some(http_date(changed).as_str()),
    };
    let same = request.field("if-range").is_none_or(|known| known == etag);
    let range = request.range(length).filter(|_| page.ranges && same);
    shelf.renewals += u64::from(current);
    let mut head = match range {
        _ if current => "HTTP/1.1 304 Not Modified\r\n".to_owned(),
        Some((from, end)) => {
            format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{length}\r\n",
                end - 1
            )
        }
        None => "HTTP/1.1 200 OK\r\n".to_owned(),
    };
    let chunked = page.chunked && range.is_none() && !current;
    head += &format!("Cache-Control: max-age={}\r\n", page.max_age);
    head += &format!(
        "Soak-Version: {version}\r\nSoak-Variant: {variant}\r\nSoak-Renewal: {}\r\n",
        shelf.renewals
    );
    for (wanted, line) in [
        (page.varies, "Vary: Accept-Language\r\n".to_owned()),
        (page.dated, format!("Date: {}\r\n", http_date(clock::wall()))),
        (page.validator == Validator::Tag, format!("ETag: {etag}\r\n")),
        (page.validator == Validator::Date, format!("Last-Modified: {}\r\n", http_date(changed))),
        (page.ranges, "Accept-Ranges: bytes\r\n".to_owned()),
        (chunked, "Transfer-Encoding: chunked\r\n".to_owned()),
    ] {
        head += if wanted { &line } else { "" };
    }
    let whole = range.unwrap_or((0, length));
    if !chunked && !current {
        head += &format!("Content-Length: {}\r\n", whole.1 - whole.0);
    }
    head += "\r\n";
    let silent = current || request.method == "HEAD";
    let part = if silent { (0, 0) } else { whole };
    let what = head.split("\r\n").next().unwrap_or("").to_owned();
    book.note(format!("origin: {} variant {variant} version {version}: {what}", request.method));
    let tag = tag(page.number, variant, version);
    Answer { head, tag, part, chunked: chunked && !silent }
}

fn etag(page: usize, variant: usize, version: u64) -> String {
    format!("\"{page}-{variant}-{version}\"")
}

fn http_date(time: WallTime) -> String {
    String::from_utf8_lossy(&foxy_rules::date::preferred(time)).into_owned()
}
