//! The address of an engine, the external server with the fleet's purge log. The scheme of the URL
//! decides whether the engine is NATS or Redis.

use super::engine::{Engine, EngineError, Watch};
use super::nats::{NatsEngine, NatsServer, NatsWatch};
use super::redis::{RedisEngine, RedisServer, RedisWatch};

/// The user and the password with which foxy logs in to an engine (the server with the purge log).
pub struct EngineCredentials {
    pub(super) user: String,
    pub(super) password: String,
}

impl EngineCredentials {
    /// Reads `USER:PASSWORD`. If the user is empty, the password is for the server's default user,
    /// or is a token. Returns `None` if the colon is missing, or if the text contains a control
    /// character.
    pub fn read(text: &str) -> Option<Self> {
        let (user, password) = text.split_once(':')?;
        let is_sound = !text.contains(char::is_control);
        is_sound.then(|| Self { user: user.to_owned(), password: password.to_owned() })
    }
}

/// The address of an engine: a server that keeps the fleet's purge log.
pub enum EngineAddress {
    /// The engine is NATS JetStream.
    Nats(NatsServer),
    /// The engine is Redis or Valkey.
    Redis(RedisServer),
}

impl EngineAddress {
    /// Reads the URL of an engine. `credentials` apply if the URL contains no password.
    ///
    /// # Errors
    /// Returns an error if the URL is unusable. The error does not repeat the URL, because the URL
    /// may contain a password.
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

    /// Returns a watch, which waits for new entries of the engine's purge log.
    pub fn watch(&self) -> Box<dyn Watch> {
        match self {
            Self::Nats(server) => Box::new(NatsWatch::new(server)),
            Self::Redis(server) => Box::new(RedisWatch::new(server)),
        }
    }
}
