//! A storm: clients reload some pages, whose fetches are slow, and then request thousands of other
//! URLs. The slow fetches end last. Afterwards foxy must not serve the old versions of the pages.

use crate::clients::{Ask, Client, Shared};
use crate::ledger::{Broken, locked};
use foxy_base::clock;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Number of connections that send the requests of a storm.
const CONNECTIONS: usize = 48;

/// Number of requests that a connection sends before it reads the first response.
const BATCH: usize = 8;

/// Runs a storm of `urls` URLs while slow fetches of `pages` are in progress.
pub fn storm(shared: &Arc<Shared>, pages: Range<usize>, urls: usize) {
    shared.origin.holding.store(true, Ordering::SeqCst);
    let ask = |page, fields: &str| Ask { page, fields: fields.to_owned(), ..Ask::default() };
    let slow: Vec<_> = pages
        .clone()
        .map(|page| {
            let (shared, ask) = (Arc::clone(shared), ask(page, "Soak-Hold: 1\r\n"));
            spawn(move || Client::new(&shared, 0).ask(&ask))
        })
        .collect();
    let begun = clock::monotonic();
    while !pages.clone().all(|page| shared.ledger.book(page).was_asked_for()) {
        sleep(Duration::from_millis(5));
        if clock::monotonic().since(begun) > Duration::from_secs(10) {
            break;
        }
    }
    let mut client = Client::new(shared, 0);
    for page in pages.clone() {
        let fields = "Cache-Control: no-cache\r\nSoak-Bump: 1\r\n";
        client.ask(&Ask { reload: true, ..ask(page, fields) });
    }
    for fields in ["", "Cache-Control: no-cache\r\n"] {
        if let Err(error) = all(shared, urls, fields) {
            let text = format!("a storm did not get all answers: {error}");
            shared.ledger.found_elsewhere(Broken::Dead, text);
        }
    }
    shared.origin.holding.store(false, Ordering::SeqCst);
    for client in slow {
        client.join().expect("a client that asks once");
    }
    for page in pages {
        client.ask(&ask(page, ""));
    }
}

/// Requests each URL of the storm once.
fn all(shared: &Arc<Shared>, urls: usize, fields: &'static str) -> io::Result<()> {
    let share = urls.div_ceil(CONNECTIONS);
    let parts: Vec<_> = (0..CONNECTIONS)
        .map(|part| {
            let shared = Arc::clone(shared);
            spawn(move || some(&shared, part * share..urls.min((part + 1) * share), fields))
        })
        .collect();
    parts.into_iter().try_for_each(|part| part.join().expect("a client of the storm"))
}

fn some(shared: &Shared, numbers: Range<usize>, fields: &str) -> io::Result<()> {
    let (address, _) = locked(&shared.place).addresses.ok_or(io::ErrorKind::NotConnected)?;
    let mut stream = BufReader::new(TcpStream::connect(address)?);
    stream.get_ref().set_read_timeout(Some(crate::wire::PATIENCE))?;
    let host = shared.origin.address;
    let numbers: Vec<usize> = numbers.collect();
    for batch in numbers.chunks(BATCH) {
        let mut text = String::new();
        for number in batch {
            let _never_fails = write!(
                text,
                "GET http://{host}/s/{number} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
            );
        }
        stream.get_mut().write_all(text.as_bytes())?;
        for _ in batch {
            answer(&mut stream)?;
        }
    }
    Ok(())
}

/// Reads a response, which must have a `Content-Length`.
fn answer(stream: &mut impl BufRead) -> io::Result<()> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        length =
            text.strip_prefix("content-length: ").map_or(length, |text| text.parse().unwrap_or(0));
    }
    io::copy(&mut stream.take(length), &mut io::sink()).map(|_| ())
}
