//! The engine on Redis or Valkey: a stream with the purge log, and a hash table with the members'
//! records. The server refuses an entry whose ID is not above all earlier IDs, so two writers never
//! take the same position.

use super::address::EngineCredentials;
use super::engine::{
    Append, Appended, CALL_TIMEOUT, Connected, Durability, Engine, EngineError, LogView,
    MAX_VIEW_ENTRIES, WATCH_TIMEOUT, Watch,
};
use super::entry::Process;
use super::lease::MemberRecord;
use redis::io::tcp::TcpSettings;
use redis::{
    Client, Connection, FromRedisValue, IntoConnectionInfo, RedisError, Value, cmd,
    from_redis_value, pipe,
};
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// The key of the purge log. Because of the braces, a Redis cluster stores both keys of foxy on the
/// same server.
const LOG: &str = "{foxy-fleet}:purges";
const RECORDS: &str = "{foxy-fleet}:members";
const FIELD: &str = "e";
/// Approximate number of entries that the purge log keeps. A member that missed more entries
/// demands validation of all responses that it stored before.
const KEPT_ENTRIES: u64 = 100_000;

/// The largest permitted position of an entry in the purge log.
const MAX_POSITION: u64 = u64::MAX / 2;

/// An engine on Redis or Valkey, which foxy reaches through one connection.
pub struct RedisEngine {
    client: Client,
    connection: Option<Connection>,
}

impl From<RedisError> for EngineError {
    fn from(error: RedisError) -> Self {
        Self::Away(error.to_string())
    }
}

/// The address of a Redis or Valkey server.
pub struct RedisServer(Client);

impl RedisServer {
    /// Reads the URL of a Redis server, such as `redis://127.0.0.1:6379/0`. `credentials` apply if
    /// the URL contains no password.
    ///
    /// # Errors
    /// Returns an error if the URL is unusable. The error does not repeat the URL, because the URL
    /// may contain a password.
    pub fn new(url: &str, credentials: Option<&EngineCredentials>) -> Result<Self, EngineError> {
        let unusable = |error: RedisError| EngineError::BadAddress(error.to_string());
        // Without TCP_NODELAY, the end of a request waits up to 40 ms until the server acknowledges
        // the request's first packet.
        let tcp = TcpSettings::default().set_nodelay(true);
        let info = url.into_connection_info().map_err(unusable)?.set_tcp_settings(tcp);
        let mut login = info.redis_settings().clone();
        if let (Some(EngineCredentials { user, password }), None) = (credentials, login.password())
        {
            login = login.set_password(password);
            login = if user.is_empty() { login } else { login.set_username(user) };
        }
        Client::open(info.set_redis_settings(login)).map(Self).map_err(unusable)
    }
}

fn connection(client: &Client) -> Result<Connection, EngineError> {
    let connection = client.get_connection_with_timeout(CALL_TIMEOUT)?;
    connection.set_read_timeout(Some(CALL_TIMEOUT))?;
    connection.set_write_timeout(Some(CALL_TIMEOUT))?;
    Ok(connection)
}

fn read<T: FromRedisValue>(value: Option<Value>, what: &'static str) -> Result<T, EngineError> {
    let value = value.ok_or(EngineError::Unexpected(what))?;
    from_redis_value(value).map_err(|_| EngineError::Unexpected(what))
}

fn id(position: u64) -> String {
    format!("{position}-0")
}

/// Reads the position of an entry from its ID in the Redis stream. Returns an error for an ID that
/// is too large. Only another program could have written such an ID.
fn position(id: &str) -> Result<u64, EngineError> {
    let number = id.split('-').next().and_then(|number| number.parse().ok());
    number.filter(|position| *position <= MAX_POSITION).ok_or(EngineError::Unexpected("ID"))
}

type RawEntry = (String, Vec<Vec<u8>>);

/// Returns the position and the bytes of an entry in the Redis stream. If another program wrote the
/// entry, the bytes are empty, and so cannot be decoded.
fn entry((id, fields): RawEntry) -> Result<(u64, Vec<u8>), EngineError> {
    let bytes = match <[Vec<u8>; 2]>::try_from(fields) {
        Ok([name, bytes]) if name == FIELD.as_bytes() => bytes,
        _ => Vec::new(),
    };
    Ok((position(&id)?, bytes))
}

impl RedisEngine {
    /// Creates an engine that connects to `server`.
    pub fn new(server: &RedisServer) -> Self {
        Self { client: server.0.clone(), connection: None }
    }

    fn connection(&mut self) -> Result<&mut Connection, EngineError> {
        self.connection.as_mut().ok_or(EngineError::Unexpected("connection"))
    }

    fn durability(&mut self) -> Durability {
        for (name, right) in [("appendonly", "yes"), ("appendfsync", "always")] {
            let Ok(connection) = self.connection() else { return Durability::Unknown };
            let told = cmd("CONFIG").arg("GET").arg(name).query::<Vec<String>>(connection);
            match told.ok().as_deref() {
                Some([_, value]) if value == right => {}
                Some([_, value]) => {
                    return Durability::Weak(format!("`{name}` is `{value}`, not `{right}`"));
                }
                _ => return Durability::Unknown,
            }
        }
        Durability::Always
    }
}

impl Engine for RedisEngine {
    fn connect(&mut self) -> Result<Connected, EngineError> {
        self.connection = None;
        self.connection = Some(connection(&self.client)?);
        let facts: String = cmd("INFO").arg("server").query(self.connection()?)?;
        let run = facts.lines().find_map(|line| line.strip_prefix("run_id:"));
        let run = run.ok_or(EngineError::Unexpected("run_id"))?.trim();
        let durability = self.durability();
        Ok(Connected { incarnation: xxh3_64(run.as_bytes()), durability })
    }

    fn append(&mut self, append: &Append) -> Result<Appended, EngineError> {
        let mut command = cmd("XADD");
        command.arg(LOG);
        if append.drops_earlier {
            command.arg("MINID").arg("=").arg(id(append.position));
        } else {
            command.arg("MAXLEN").arg("~").arg(KEPT_ENTRIES);
        }
        command.arg(id(append.position)).arg(FIELD).arg(&append.bytes);
        match command.query::<String>(self.connection()?) {
            Ok(_) => Ok(Appended::Done),
            Err(error) if error.to_string().contains("equal or smaller") => Ok(Appended::Taken),
            Err(error) => Err(error.into()),
        }
    }

    fn exchange(
        &mut self,
        record: Option<&MemberRecord>,
        gone: &[Process],
        after: u64,
    ) -> Result<LogView, EngineError> {
        let mut steps = pipe();
        steps.atomic();
        if let Some(record) = record {
            steps.hset(RECORDS, record.process.to_string(), record.text()).ignore();
        }
        for process in gone.iter().filter(|_| record.is_some()) {
            steps.hdel(RECORDS, process.to_string()).ignore();
        }
        steps.cmd("HGETALL").arg(RECORDS);
        steps.cmd("XRANGE").arg(LOG).arg(id(after + 1)).arg("+");
        steps.arg("COUNT").arg(MAX_VIEW_ENTRIES);
        steps.cmd("XINFO").arg("STREAM").arg(LOG);
        let answers: Vec<Value> = match steps.query(self.connection()?) {
            Ok(answers) => answers,
            Err(error) if error.to_string().contains("no such key") => {
                return Ok(LogView::default());
            }
            Err(error) => return Err(error.into()),
        };
        let mut answers = answers.into_iter();
        let records: HashMap<String, String> = read(answers.next(), "records")?;
        let parsed = |(process, text): (String, String)| {
            MemberRecord::parse(Process::parse(&process)?, &text)
        };
        let entries: Vec<RawEntry> = read(answers.next(), "entries")?;
        let mut facts: HashMap<String, Value> = read(answers.next(), "description of the log")?;
        let first: Option<RawEntry> = read(facts.remove("first-entry"), "first entry")?;
        let last: Option<RawEntry> = read(facts.remove("last-entry"), "last entry")?;
        let tail: String = read(facts.remove("last-generated-id"), "last ID")?;
        Ok(LogView {
            first: first.map(entry).transpose()?.map_or(0, |(position, _)| position),
            tail: position(&tail)?,
            count: read(facts.remove("length"), "length")?,
            last: last.map(entry).transpose()?.map(|(_, bytes)| bytes),
            entries: entries.into_iter().map(entry).collect::<Result<_, _>>()?,
            records: records.into_iter().filter_map(parsed).collect(),
        })
    }
}

/// Waits for new entries of the purge log on a Redis server.
pub struct RedisWatch {
    client: Client,
    connection: Option<Connection>,
}

impl RedisWatch {
    /// Creates a wait for new entries of the purge log at `server`.
    pub fn new(server: &RedisServer) -> Self {
        Self { client: server.0.clone(), connection: None }
    }
}

impl Watch for RedisWatch {
    fn wait(&mut self, after: u64) -> Result<(), EngineError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connection(&self.client)?,
        };
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(1).arg("BLOCK").arg(WATCH_TIMEOUT.as_millis() as u64);
        command.arg("STREAMS").arg(LOG).arg(id(after));
        command.query::<Value>(&mut connection)?;
        self.connection = Some(connection);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_without_a_later_position_is_unusable() {
        assert_eq!(position("7-0"), Ok(7));
        for text in ["18446744073709551615-0", "9223372036854775808-0", "-1", "x"] {
            assert_eq!(position(text), Err(EngineError::Unexpected("ID")), "{text}");
        }
    }
}
