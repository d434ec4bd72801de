//! The address of an engine. The scheme of its URL decides the kind of engine.

use super::engine::{Engine, EngineError, Watch};
use super::nats::{NatsEngine, NatsServer, NatsWatch};
use super::redis::{RedisEngine, RedisServer, RedisWatch};

/// A user and a password of a server.
pub struct EngineCredentials {
    pub(super) user: String,
    pub(super) password: String,
}

impl EngineCredentials {
    /// Reads `USER:PASSWORD`. An empty user means the server's default user, or that the password
    /// is a token. Returns `None` if the colon is missing, or the text has a control character.
    pub fn read(text: &str) -> Option<Self> {
        let (user, password) = text.split_once(':')?;
        let is_sound = !text.contains(char::is_control);
        is_sound.then(|| Self { user: user.to_owned(), password: password.to_owned() })
    }
}

/// A server with an engine.
pub enum EngineAddress {
    /// NATS JetStream.
    Nats(NatsServer),
    /// Redis or Valkey.
    Redis(RedisServer),
}

impl EngineAddress {
    /// Reads a URL. `credentials` apply if the URL contains no password.
    ///
    /// # Errors
    /// The URL is unusable. The error does not repeat the URL, because it may contain a password.
    pub fn new(url: &str, credentials: Option<&EngineCredentials>) -> Result<Self, EngineError> {
        if ["nats://", "tls://"].iter().any(|scheme| url.starts_with(scheme)) {
            NatsServer::new(url, credentials).map(Self::Nats)
        } else {
            RedisServer::new(url, credentials).map(Self::Redis)
        }
    }

    /// Returns an engine that is not connected yet.
    pub fn engine(&self) -> Box<dyn Engine> {
        match self {
            Self::Nats(server) => Box::new(NatsEngine::new(server)),
            Self::Redis(server) => Box::new(RedisEngine::new(server)),
        }
    }

    /// Returns a wait for new entries.
    pub fn watch(&self) -> Box<dyn Watch> {
        match self {
            Self::Nats(server) => Box::new(NatsWatch::new(server)),
            Self::Redis(server) => Box::new(RedisWatch::new(server)),
        }
    }
}
