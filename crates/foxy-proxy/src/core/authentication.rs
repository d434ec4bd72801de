//! Finds out which user of the proxy sends a request. The slow password checks run on other
//! threads. Clients share a queue of checks, in which each client has at most one check. So a
//! client that tries many passwords delays another client by at most one check. Clients that guess
//! passwords have a queue of their own, and their checks give way to all other work.

use crate::core::background::in_background;
use crate::core::live::Live;
use crate::core::places::ClientBlock;
use crate::core::users::{UserBook, matches};
use argon2::password_hash::rand_core::{OsRng, RngCore};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blake2::Blake2sMac256;
use blake2::digest::Mac;
use foxy_http::Headers;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Number of password checks that may run at the same time for guessers. For all other clients, the
/// same number may run. Each check uses 19 MiB of memory.
const CHECKS_AT_ONCE: usize = 1;
/// After this number of wrong passwords in a row, a client counts as a guesser.
const WRONG_TRIES_OF_GUESSER: u8 = 3;
/// Number of requests of one client that may wait for a password check. Further requests are
/// refused.
const MAX_WAITING_OF_CLIENT: usize = 128;
/// Longest time for which a request waits for its password check. The checks of guessers may wait
/// very long on a busy machine. The request is then refused.
const CHECK_PATIENCE: Duration = Duration::from_secs(10);
/// Limit of each of three lists in memory: right credentials, wrong credentials, and clients that
/// sent wrong credentials.
const MAX_REMEMBERED: usize = 4096;

/// The reason why the proxy cannot assign a request to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoUser {
    /// The credentials are missing, unreadable or wrong.
    Credentials,
    /// Too many requests of the client wait for a password check, or this request waited too long.
    Busy,
}

/// Checks the credentials of requests. All workers share it.
#[derive(Debug)]
pub(crate) struct Authenticator {
    book: Live<Option<UserBook>>,
    checks: Arc<Semaphore>,
    guesses: Arc<Semaphore>,
    queues: Queues,
    remembered: Arc<Mutex<Remembered>>,
    /// Secret key of the hashes in `remembered`. Without this key, a reader of the proxy's memory
    /// cannot test passwords against these hashes.
    key: [u8; 32],
}

/// The results of earlier password checks, under hashes of the credentials. Each hash also covers
/// the user's password hash in the users file. So a new password in the file makes the old results
/// useless.
#[derive(Debug, Default)]
struct Remembered {
    right: HashSet<[u8; 32]>,
    wrong: HashSet<[u8; 32]>,
    /// Number of wrong passwords of each client since its last right password.
    wrong_tries: HashMap<ClientBlock, u8>,
}

impl Remembered {
    fn result(&self, hash: &[u8; 32]) -> Option<bool> {
        let is_right = self.right.contains(hash);
        (is_right || self.wrong.contains(hash)).then_some(is_right)
    }

    fn add(&mut self, hash: [u8; 32], client: ClientBlock, is_right: bool) {
        let set = if is_right { &mut self.right } else { &mut self.wrong };
        if set.len() >= MAX_REMEMBERED {
            set.clear();
        }
        set.insert(hash);
        if is_right {
            self.wrong_tries.remove(&client);
            return;
        }
        if self.wrong_tries.len() >= MAX_REMEMBERED {
            self.wrong_tries.clear();
        }
        let tries = self.wrong_tries.entry(client).or_default();
        *tries = tries.saturating_add(1);
    }

    fn is_guesser(&self, client: ClientBlock) -> bool {
        self.wrong_tries.get(&client).is_some_and(|tries| *tries >= WRONG_TRIES_OF_GUESSER)
    }
}

impl Authenticator {
    pub(crate) fn new(book: Live<Option<UserBook>>) -> Self {
        let mut key = [0; 32];
        OsRng.fill_bytes(&mut key);
        let [checks, guesses] = [(); 2].map(|()| Arc::new(Semaphore::new(CHECKS_AT_ONCE)));
        Self { book, checks, guesses, queues: Queues::default(), remembered: Arc::default(), key }
    }

    /// Returns true if the proxy has a users file, so that each request must come from a user.
    pub(crate) fn is_needed(&self) -> bool {
        self.book.get().is_some()
    }

    /// Returns whether the users file still lists `user`.
    pub(crate) fn knows(&self, user: &str) -> bool {
        (**self.book.get()).as_ref().is_some_and(|book| book.contains(user))
    }

    /// Returns the user whose credentials `Proxy-Authorization` contains.
    pub(crate) async fn user(
        &self,
        headers: &Headers,
        client: ClientBlock,
    ) -> Result<Arc<str>, NoUser> {
        let mut values = headers.get_all("proxy-authorization");
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(NoUser::Credentials);
        };
        match Credentials::read(value).ok_or(NoUser::Credentials)? {
            Credentials::Token(token) => {
                let book = self.book.get();
                let user = (**book).as_ref().and_then(|book| book.with_token(token));
                user.ok_or(NoUser::Credentials)
            }
            Credentials::Password { name, password } => {
                self.user_with_password(&name, password, client).await
            }
        }
    }

    async fn user_with_password(
        &self,
        name: &str,
        password: String,
        client: ClientBlock,
    ) -> Result<Arc<str>, NoUser> {
        let (hash, user) = {
            let book = self.book.get();
            let book = (**book).as_ref().ok_or(NoUser::Credentials)?;
            // A client program that supports only Basic authentication may send a token instead of
            // the password of the token's user.
            let owner = book.with_token(password.as_bytes());
            if let Some(owner) = owner.filter(|owner| **owner == *name) {
                return Ok(owner);
            }
            let (hash, user) = book.hash_of(name);
            (hash.to_owned(), user)
        };
        let key = self.keyed(&[&hash, name, &password]);
        let judge = |is_right: bool| user.clone().filter(|_| is_right).ok_or(NoUser::Credentials);
        if let Some(is_right) = lock(&self.remembered).result(&key) {
            return judge(is_right);
        }
        let place = self.queues.enter(client).ok_or(NoUser::Busy)?;
        let is_right = timeout(CHECK_PATIENCE, self.check(place, key, (hash, password), client));
        judge(is_right.await.map_err(|_| NoUser::Busy)??)
    }

    /// Waits until it is the client's turn, and compares the password with its hash. Returns
    /// whether the password is right. If the caller drops the future, a begun check continues.
    async fn check(
        &self,
        place: QueuePlace,
        key: [u8; 32],
        (hash, password): (String, String),
        client: ClientBlock,
    ) -> Result<bool, NoUser> {
        let turn = Arc::clone(&place.turn).acquire_owned().await.map_err(|_| NoUser::Busy)?;
        // Another request of the client may have checked the same credentials meanwhile.
        if let Some(is_right) = lock(&self.remembered).result(&key) {
            return Ok(is_right);
        }
        let is_guesser = lock(&self.remembered).is_guesser(client);
        let slots = if is_guesser { &self.guesses } else { &self.checks };
        let slot = Arc::clone(slots).acquire_owned().await.map_err(|_| NoUser::Busy)?;
        let remembered = Arc::clone(&self.remembered);
        // The password check continues even if the client disconnects. No other check can take its
        // place until it has ended.
        let check = move || {
            let is_right = matches(&hash, password.as_bytes());
            lock(&remembered).add(key, client, is_right);
            drop((slot, turn, place));
            is_right
        };
        let is_right = match is_guesser {
            true => in_background(check).await,
            false => tokio::task::spawn_blocking(check).await.ok(),
        };
        Ok(is_right.unwrap_or(false))
    }

    fn keyed(&self, parts: &[&str]) -> [u8; 32] {
        let mac = Blake2sMac256::new_from_slice(&self.key).expect("BLAKE2s takes keys of 32 bytes");
        let add = |mac: Blake2sMac256, part: &&str| {
            mac.chain_update(part.len().to_le_bytes()).chain_update(part)
        };
        parts.iter().fold(mac, add).finalize().into_bytes().into()
    }
}

/// The content of `Proxy-Authorization`.
enum Credentials<'a> {
    /// A bearer token (RFC 6750).
    Token(&'a [u8]),
    /// A name and a password (RFC 7617).
    Password { name: String, password: String },
}

impl<'a> Credentials<'a> {
    fn read(value: &'a [u8]) -> Option<Self> {
        let (scheme, rest) = value.split_at(value.iter().position(|byte| *byte == b' ')?);
        let rest = rest.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(Self::Token(rest));
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let text = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
        let (name, password) = text.split_once(':')?;
        Some(Self::Password { name: name.to_owned(), password: password.to_owned() })
    }
}

/// The numbers of requests that wait for a password check, by client. A client without waiting
/// requests has no entry.
#[derive(Clone, Debug, Default)]
struct Queues(Arc<Mutex<HashMap<ClientBlock, Queue>>>);

#[derive(Debug)]
struct Queue {
    turn: Arc<Semaphore>,
    places: usize,
}

impl Queues {
    /// Adds a request to the queue of its client. Returns `None` if the queue is full.
    fn enter(&self, client: ClientBlock) -> Option<QueuePlace> {
        let mut all = lock(&self.0);
        let new = || Queue { turn: Arc::new(Semaphore::new(1)), places: 0 };
        let queue = all.entry(client).or_insert_with(new);
        if queue.places >= MAX_WAITING_OF_CLIENT {
            return None;
        }
        queue.places += 1;
        Some(QueuePlace { queues: self.clone(), client, turn: Arc::clone(&queue.turn) })
    }
}

/// The place of one request in the password queue of its client. Dropping this value frees the
/// place.
struct QueuePlace {
    queues: Queues,
    client: ClientBlock,
    turn: Arc<Semaphore>,
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut all = lock(&self.queues.0);
        if let Entry::Occupied(mut queue) = all.entry(self.client) {
            queue.get_mut().places -= 1;
            if queue.get().places == 0 {
                queue.remove();
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "authentication_tests.rs"]
mod tests;
