//! The engine on NATS JetStream, with two streams. The first stream is the purge log: the sequence
//! number of a message is its entry's position. The second stream has the last record of each
//! process.
//!
//! An append states the number that the last message must have, so two writers never take the same
//! position. Each stream has one replica, on the server to which foxy is connected. So each request
//! takes effect at one moment between the request and its answer, as [`Engine`] demands. The
//! records are in memory. A server that loses them has restarted, so its incarnation number
//! differs.

mod connection;
mod server;
mod streams;

pub use server::NatsServer;

use super::engine::{
    Append, Appended, CALL_TIMEOUT, Connected, Durability, Engine, EngineError, LogView,
    MAX_VIEW_ENTRIES, WATCH_TIMEOUT, Watch,
};
use super::entry::Process;
use super::lease::MemberRecord;
use async_nats::{Client, HeaderMap, ServerInfo, Subscriber};
use connection::{NatsConnection, request};
use foxy_base::clock;
use futures_util::future::try_join_all;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use server::Names;
use std::collections::BTreeMap;
use std::time::Duration;
use streams::{NO_STREAM, StreamInfo, WRONG_LAST, ask, describe, get, publish, remove};
use xxhash_rust::xxh3::xxh3_64;

/// Number of entries that the purge log keeps. A member that missed more entries demands validation
/// of all responses that it stored before.
const KEPT_ENTRIES: u64 = 100_000;
/// Number of log entries that an exchange with the engine requests at the same time.
const AT_ONCE: u64 = 32;
/// When an exchange has taken this time, it requests no more log entries.
const LONG: Duration = CALL_TIMEOUT.checked_div(4).expect("not zero");
/// First version of NATS with which the server's setting `sync_interval: always` makes all
/// confirmed entries durable.
const FIRST_VERSION: (u32, u32) = (2, 15);
/// Time limit of the request for the server's settings.
const SETTINGS_TIMEOUT: Duration = Duration::from_millis(500);

/// An engine on NATS JetStream, which foxy reaches through one connection.
pub struct NatsEngine {
    server: NatsServer,
    session: Option<NatsSession>,
}

struct NatsSession {
    connection: NatsConnection,
    /// The creation times of two streams: first the stream of the purge log, then the stream of the
    /// records.
    created: [String; 2],
    /// For each process, the message number of its record at the last read.
    seen: BTreeMap<Process, u64>,
}

impl NatsEngine {
    /// Creates an engine that connects to `server`.
    pub fn new(server: &NatsServer) -> Self {
        Self { server: server.clone(), session: None }
    }

    fn session(&self) -> Result<&NatsSession, EngineError> {
        self.session.as_ref().ok_or(EngineError::Unexpected("connection"))
    }
}

impl Engine for NatsEngine {
    fn connect(&mut self) -> Result<Connected, EngineError> {
        self.session = None;
        let begun = clock::monotonic();
        let left = || CALL_TIMEOUT.saturating_sub(clock::monotonic().since(begun));
        let connection = NatsConnection::open(&self.server)?;
        let (client, names) = (connection.client(), &self.server.names);
        let info = client.server_info();
        let created = connection.block_on(left(), async {
            let log = open(client, &names.log, &names.log_config(), &info).await?;
            let records = open(client, &names.records, &names.records_config(), &info).await?;
            if log.config.storage != "file" || !log.config.allow_rollup_hdrs {
                let text = format!("the stream `{}` needs file storage and rollups", names.log);
                return Err(EngineError::Away(text));
            }
            Ok([log.created, records.created])
        })?;
        let durability = connection.block_on(left(), durability(client, &info))?;
        let run = format!("{} {} {}", info.server_id, created[0], created[1]);
        self.session = Some(NatsSession { connection, created, seen: BTreeMap::new() });
        Ok(Connected { incarnation: xxh3_64(run.as_bytes()), durability })
    }

    fn append(&mut self, append: &Append) -> Result<Appended, EngineError> {
        let connection = &self.session()?.connection;
        let calls = append_entry(connection.client(), &self.server.names, append);
        connection.block_on(CALL_TIMEOUT, calls)
    }

    fn exchange(
        &mut self,
        record: Option<&MemberRecord>,
        gone: &[Process],
        after: u64,
    ) -> Result<LogView, EngineError> {
        let NatsSession { connection, created, seen } = self.session()?;
        let (client, names) = (connection.client(), &self.server.names);
        let (view, seen) = connection.block_on(CALL_TIMEOUT, async {
            if let Some(record) = record {
                write_record(client, names, record).await?;
                for (process, number) in gone.iter().filter_map(|one| seen.get_key_value(one)) {
                    // If the process has written another record since the last read, that record
                    // stays.
                    let subject = names.record(process);
                    remove(client, &names.records, Some(&subject), number + 1).await?;
                }
            }
            let (records, seen) = read_records(client, names, &created[1]).await?;
            let view = read_log(client, names, &created[0], after).await?;
            Ok((LogView { records, ..view }, seen))
        })?;
        self.session.iter_mut().for_each(|session| session.seen.clone_from(&seen));
        Ok(view)
    }
}

/// Returns the description of a stream. Creates the stream if it does not exist.
async fn open(
    client: &Client,
    stream: &str,
    config: &Value,
    server: &ServerInfo,
) -> Result<StreamInfo, EngineError> {
    let found = ask::<StreamInfo>(client, "INFO", stream, &json!({})).await?;
    if found.as_ref().is_err_and(|refusal| refusal.err_code == NO_STREAM) {
        ask::<Value>(client, "CREATE", stream, config).await??;
    }
    let info = describe(client, stream).await?;
    let leader = info.cluster.as_ref().and_then(|cluster| cluster.leader.as_ref());
    if info.config.num_replicas != 1 || leader.is_some_and(|leader| *leader != server.server_name) {
        let text = format!("the stream `{stream}` must have one replica, on this server");
        return Err(EngineError::Away(text));
    }
    Ok(info)
}

/// Asks the NATS server whether it writes each entry to disk at once. The server answers only if
/// its configuration permits this.
async fn durability(client: &Client, server: &ServerInfo) -> Result<Durability, EngineError> {
    let version = &server.version;
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < FIRST_VERSION {
        return Ok(Durability::Weak(format!("its version is {version}, not 2.15 or later")));
    }
    let asked = request(client, "$SYS.REQ.SERVER.PING.JSZ".into(), HeaderMap::new(), Vec::new());
    let Ok(Ok(answer)) = tokio::time::timeout(SETTINGS_TIMEOUT, asked).await else {
        return Ok(Durability::Unknown);
    };
    let facts: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
    let is_own = facts["server"]["id"] == *server.server_id;
    Ok(match &facts["data"]["config"] {
        Value::Object(config) if is_own && config.get("sync_always") == Some(&json!(true)) => {
            Durability::Always
        }
        Value::Object(_) if is_own => Durability::Weak("`sync_interval` is not `always`".into()),
        _ => Durability::Unknown,
    })
}

async fn append_entry(
    client: &Client,
    names: &Names,
    append: &Append,
) -> Result<Appended, EngineError> {
    let last = append.position - 1;
    let publish = || {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Sequence", last.to_string());
        if append.drops_earlier {
            headers.insert("Nats-Rollup", "all");
        }
        publish(client, names.entries.clone(), headers, append.bytes.clone())
    };
    let refusal = match publish().await? {
        Ok(_) => return Ok(Appended::Done),
        Err(refusal) => refusal,
    };
    if refusal.err_code != WRONG_LAST {
        return Err(refusal.into());
    }
    if !append.drops_earlier || describe(client, &names.log).await?.state.last_seq >= last {
        return Ok(Appended::Taken);
    }
    // The log lost entries that this member knows, so its last number is too low for the new entry.
    // The removal of all messages before the new position also moves the number of the next
    // message. A crash before the second publication leaves an empty log; the members then begin a
    // new chain.
    remove(client, &names.log, None, append.position).await?;
    match publish().await? {
        Ok(_) => Ok(Appended::Done),
        Err(refusal) if refusal.err_code == WRONG_LAST => Ok(Appended::Taken),
        Err(refusal) => Err(refusal.into()),
    }
}

async fn write_record(
    client: &Client,
    names: &Names,
    record: &MemberRecord,
) -> Result<(), EngineError> {
    let text = format!("{}\n{}", record.process, record.text());
    let subject = names.record(&record.process);
    publish(client, subject, HeaderMap::new(), text.into_bytes()).await??;
    Ok(())
}

/// Returns an error if the stream was deleted and created again after foxy connected to the server.
fn check_created(info: &StreamInfo, created: &str) -> Result<(), EngineError> {
    let is_same = info.created == created;
    let text = || "a stream of the fleet was created again".to_owned();
    is_same.then_some(()).ok_or_else(|| EngineError::Away(text()))
}

/// Returns the records of all processes, and the message number of each record.
async fn read_records(
    client: &Client,
    names: &Names,
    created: &str,
) -> Result<(Vec<MemberRecord>, BTreeMap<Process, u64>), EngineError> {
    let info = describe(client, &names.records).await?;
    check_created(&info, created)?;
    let which: Vec<_> =
        info.state.subjects.keys().map(|subject| json!({ "last_by_subj": subject })).collect();
    let found = try_join_all(which.iter().map(|which| get(client, &names.records, which))).await?;
    let parse = |(number, bytes): (u64, Vec<u8>)| {
        let text = String::from_utf8(bytes).ok()?;
        let (process, text) = text.split_once('\n')?;
        Some((MemberRecord::parse(Process::parse(process)?, text)?, number))
    };
    let records: Vec<_> = found.into_iter().flatten().filter_map(parse).collect();
    let numbers = records.iter().map(|(record, number)| (record.process.clone(), *number));
    let numbers = numbers.collect();
    Ok((records.into_iter().map(|(record, _)| record).collect(), numbers))
}

/// Returns the purge log as it was when the server described its stream. Entries that the log drops
/// after this moment are missing.
async fn read_log(
    client: &Client,
    names: &Names,
    created: &str,
    after: u64,
) -> Result<LogView, EngineError> {
    let info = describe(client, &names.log).await?;
    check_created(&info, created)?;
    let state = info.state;
    if state.last_seq == 0 {
        return Ok(LogView::default());
    }
    let begun = clock::monotonic();
    let which = |number: u64| json!({ "seq": number });
    let mut entries = Vec::new();
    let mut next = state.first_seq.max(after.saturating_add(1));
    while next <= state.last_seq
        && entries.len() < MAX_VIEW_ENTRIES
        && clock::monotonic().since(begun) < LONG
    {
        let end = state.last_seq.min(next.saturating_add(AT_ONCE - 1));
        let which: Vec<_> = (next..=end).map(which).collect();
        let found = try_join_all(which.iter().map(|which| get(client, &names.log, which))).await?;
        entries.extend(found.into_iter().flatten());
        next = end + 1;
    }
    let known = entries.last().filter(|(number, _)| *number == state.last_seq);
    let last = match known {
        Some((_, bytes)) => Some(bytes.clone()),
        None => get(client, &names.log, &which(state.last_seq)).await?.map(|(_, bytes)| bytes),
    };
    Ok(LogView {
        first: if state.messages == 0 { 0 } else { state.first_seq },
        tail: state.last_seq,
        count: state.messages,
        last,
        entries,
        records: Vec::new(),
    })
}

/// Waits for new entries of the purge log on a NATS server.
pub struct NatsWatch {
    server: NatsServer,
    open: Option<(NatsConnection, Subscriber)>,
}

impl NatsWatch {
    /// Creates a wait for new entries of the purge log at `server`.
    pub fn new(server: &NatsServer) -> Self {
        Self { server: server.clone(), open: None }
    }

    fn open(&self) -> Result<(NatsConnection, Subscriber), EngineError> {
        let connection = NatsConnection::open(&self.server)?;
        let (client, subject) = (connection.client(), self.server.names.stored.clone());
        let subscriber = connection.block_on(CALL_TIMEOUT, async {
            client.subscribe(subject).await.map_err(|error| EngineError::Away(error.to_string()))
        })?;
        Ok((connection, subscriber))
    }
}

impl Watch for NatsWatch {
    fn wait(&mut self, after: u64) -> Result<(), EngineError> {
        let (connection, mut stored) = match self.open.take() {
            Some(open) => open,
            None => self.open()?,
        };
        let client = connection.client();
        connection.block_on(CALL_TIMEOUT + WATCH_TIMEOUT, async {
            while stored.next().now_or_never().flatten().is_some() {}
            if describe(client, &self.server.names.log).await?.state.last_seq > after {
                return Ok(());
            }
            match tokio::time::timeout(WATCH_TIMEOUT, stored.next()).await {
                Ok(None) => Err(EngineError::Away("the connection has ended".to_owned())),
                Ok(Some(_)) | Err(_) => Ok(()),
            }
        })?;
        self.open = Some((connection, stored));
        Ok(())
    }
}
