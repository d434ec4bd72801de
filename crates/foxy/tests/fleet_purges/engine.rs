//! The engine of a test's fleet: Redis or NATS.

use crate::ground::Ground;
use crate::nats::Nats;
use crate::redis::Redis;
use crate::support::not_run;
use std::sync::Arc;

/// A kind of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    Nats,
    Redis,
}

impl EngineKind {
    /// Starts an engine on loopback. Returns `None` if the machine has no program for it.
    pub fn start(self, check: &str) -> Option<EngineServer> {
        self.start_on(&Arc::new(Ground::loopback()), check)
    }

    /// Starts an engine at the engine's place. Says which check cannot run without the program.
    pub fn start_on(self, ground: &Arc<Ground>, check: &str) -> Option<EngineServer> {
        let server = self.start_with(ground, true);
        if server.is_none() {
            not_run(check, &format!("the machine has no {}", self.program()));
        }
        server
    }

    /// Starts an engine. Without `is_durable`, it confirms entries before its disk has them.
    pub fn start_with(self, ground: &Arc<Ground>, is_durable: bool) -> Option<EngineServer> {
        match self {
            Self::Nats => Nats::start_on(ground, is_durable).map(EngineServer::Nats),
            Self::Redis => Redis::start_on(ground, is_durable).map(EngineServer::Redis),
        }
    }

    pub const fn program(self) -> &'static str {
        match self {
            Self::Nats => "nats-server; `cargo xtask tools` installs it",
            Self::Redis => "redis-server",
        }
    }
}

/// Declares a test of each function on each kind of engine.
macro_rules! on_each_engine {
    ($($test:ident),* $(,)?) => {
        mod on_nats {
            $(#[test] fn $test() { super::$test(crate::engine::EngineKind::Nats); })*
        }
        mod on_redis {
            $(#[test] fn $test() { super::$test(crate::engine::EngineKind::Redis); })*
        }
    };
}
pub(crate) use on_each_engine;

/// A running or killed engine.
pub enum EngineServer {
    Nats(Nats),
    Redis(Redis),
}

macro_rules! on_the_server {
    ($self:expr, $server:ident => $call:expr) => {
        match $self {
            Self::Nats($server) => $call,
            Self::Redis($server) => $call,
        }
    };
}

impl EngineServer {
    /// Returns the URL for nodes.
    pub fn url(&self) -> String {
        on_the_server!(self, server => server.url(""))
    }

    /// Returns the URL for nodes with a user and a password.
    pub fn url_with(&self, login: &str) -> String {
        on_the_server!(self, server => server.url(&format!("{login}@")))
    }

    /// Makes the server demand a password. Returns the credentials, as in a URL.
    pub fn require_password(&mut self, password: &str) -> String {
        on_the_server!(self, server => server.require_password(password))
    }

    /// Starts the server again, with what its disk has.
    pub fn restart(&mut self) {
        on_the_server!(self, server => server.restart());
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        on_the_server!(self, server => server.signal(name));
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        on_the_server!(self, server => server.kill());
    }

    /// Kills the server, and removes everything from its disk.
    pub fn kill_and_wipe(&mut self) {
        on_the_server!(self, server => server.kill_and_wipe());
    }

    /// Takes the entry at a position out of the log.
    pub fn remove(&self, position: u64) -> bool {
        on_the_server!(self, server => server.remove(position))
    }

    /// Returns the position of the last entry that the log ever had.
    pub fn tail(&self) -> u64 {
        on_the_server!(self, server => server.tail())
    }

    /// Takes the last entries after a position out of the log, but not more than `most`. If
    /// `is_rolled_back`, the log then also forgets that it had them. Returns their number.
    pub fn remove_last(&self, after: u64, most: u64, is_rolled_back: bool) -> u64 {
        on_the_server!(self, server => server.remove_last(after, most, is_rolled_back))
    }
}
