//! The users file. It lists the proxy's users and the hashes of their passwords and tokens. This
//! module checks passwords and tokens against the hashes. It reads no files.

use argon2::password_hash::rand_core::{OsRng, RngCore};
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use blake2::{Blake2s256, Digest};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// Begins the hash of a token in the users file. The hash of a password begins with `$argon2id$`
/// instead.
const TOKEN_MARK: &str = "$blake2s$";
const TOKEN_BYTES: usize = 24;
const MAX_NAME_BYTES: usize = 128;
const MAX_PASSWORD_BYTES: usize = 1024;

/// The cost of a password check: memory in KiB, passes and lanes, as OWASP recommends. All hashes
/// have this cost, so that the duration of a check does not show whether the user exists.
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// The hash against which a password is checked if the name is not in the file. No password matches
/// it.
const UNKNOWN: &str = "$argon2id$v=19$m=19456,t=2,p=1$Zm94eS11bmtub3duLXVzZXI\
                       $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash that proves a user's password or token. The file contains no password and no token in
/// plain text.
#[derive(Clone, PartialEq, Eq)]
enum Verifier {
    /// An Argon2 hash in PHC format.
    Password(String),
    /// The BLAKE2s hash of a random token. Nobody can guess a random token, so its hash need not be
    /// slow.
    Token([u8; 32]),
}

/// The users of the proxy. `Debug` output never shows a hash.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserBook {
    users: BTreeMap<Arc<str>, Verifier>,
    tokens: HashMap<[u8; 32], Arc<str>>,
}

impl fmt::Debug for UserBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserBook({} users)", self.users.len())
    }
}

/// The reason why a line of the users file is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadUserLine {
    /// The line has no colon.
    NoColon,
    /// The name is empty, too long, or contains a colon or a control character.
    Name,
    /// The text after the name is not a hash that `foxy user` writes.
    Hash,
    /// An earlier line has the same name or the same token.
    Repeated,
}

impl fmt::Display for BadUserLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoColon => "has no colon; `foxy user add FILE NAME` writes a line",
            Self::Name => "has no valid name; a name has up to 128 bytes without colons",
            Self::Hash => "has no valid hash; `foxy user add FILE NAME` writes a line",
            Self::Repeated => {
                "has the name or token of an earlier line; remove one of the two lines"
            }
        })
    }
}

/// A change of one user between two versions of the users file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// The user is new.
    Added,
    /// The user is gone.
    Removed,
    /// The user has a new password or token.
    NewSecret,
}

impl UserBook {
    /// Reads the content of a users file. Ignores empty lines and lines that begin with `#`.
    ///
    /// # Errors
    /// The number of the unusable line, counted from 1, and the reason.
    pub fn read(content: &str) -> Result<Self, (usize, BadUserLine)> {
        let mut book = Self::default();
        for (number, line) in (1..).zip(content.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, hash) = line.split_once(':').ok_or((number, BadUserLine::NoColon))?;
            if !is_name(name) {
                return Err((number, BadUserLine::Name));
            }
            let name: Arc<str> = name.into();
            let verifier = verifier(hash).ok_or((number, BadUserLine::Hash))?;
            let twin = match &verifier {
                Verifier::Token(hash) => book.tokens.insert(*hash, Arc::clone(&name)).is_some(),
                Verifier::Password(_) => false,
            };
            if book.users.insert(name, verifier).is_some() || twin {
                return Err((number, BadUserLine::Repeated));
            }
        }
        Ok(book)
    }

    /// Returns the names of all users in order, and whether each has a token.
    pub fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        let has_token = |verifier: &Verifier| matches!(verifier, Verifier::Token(_));
        self.users.iter().map(move |(name, verifier)| (&**name, has_token(verifier)))
    }

    /// Returns whether the file lists the user.
    pub fn contains(&self, name: &str) -> bool {
        self.users.contains_key(name)
    }

    /// Returns each user that `new` adds, removes or changes, compared with this version.
    pub fn changes<'a>(&'a self, new: &'a Self) -> Vec<(&'a str, UserChange)> {
        let gone = self.users.keys().filter(|name| !new.contains(name));
        let gone = gone.map(|name| (&**name, UserChange::Removed));
        let changed = new.users.iter().filter_map(|(name, verifier)| {
            let change = match self.users.get(name) {
                None => UserChange::Added,
                Some(old) if old != verifier => UserChange::NewSecret,
                Some(_) => return None,
            };
            Some((&**name, change))
        });
        changed.chain(gone).collect()
    }

    /// Returns the user to whom this token belongs.
    pub(super) fn with_token(&self, token: &[u8]) -> Option<Arc<str>> {
        self.tokens.get(&<[u8; 32]>::from(Blake2s256::digest(token))).cloned()
    }

    /// Returns the hash against which [`matches`] checks a password of `name`, and the user. If no
    /// user has this name and a password, returns the hash [`UNKNOWN`], so that the check takes
    /// equally long.
    pub(super) fn hash_of(&self, name: &str) -> (&str, Option<Arc<str>>) {
        match self.users.get_key_value(name) {
            Some((name, Verifier::Password(hash))) => (hash, Some(Arc::clone(name))),
            Some((_, Verifier::Token(_))) | None => (UNKNOWN, None),
        }
    }
}

/// Checks a password against a hash. Takes tens of milliseconds.
pub(super) fn matches(hash: &str, password: &[u8]) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| argon2().verify_password(password, &hash).is_ok())
}

fn argon2() -> Argon2<'static> {
    let (memory, passes, lanes) = COST;
    let cost = Params::new(memory, passes, lanes, None).expect("the cost is within the bounds");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, cost)
}

/// Returns whether a text may be the name of a user.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |character: char| character != ':' && !character.is_control();
    let is_trimmed = name.trim() == name && !name.starts_with('#');
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(is_plain) && is_trimmed
}

fn verifier(hash: &str) -> Option<Verifier> {
    if let Some(digits) = hash.strip_prefix(TOKEN_MARK) {
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(pair).collect();
        return bytes?.try_into().ok().map(Verifier::Token);
    }
    let parsed = PasswordHash::new(hash).ok()?;
    let cost = Params::try_from(&parsed).ok()?;
    let has_cost = (cost.m_cost(), cost.t_cost(), cost.p_cost()) == COST;
    let is_ours = parsed.algorithm == Algorithm::Argon2id.ident()
        && parsed.version == Some(Version::V0x13.into())
        && parsed.hash.is_some_and(|hash| hash.len() == Params::DEFAULT_OUTPUT_LEN);
    (has_cost && is_ours).then(|| Verifier::Password(hash.to_owned()))
}

/// Returns the line of the users file for a user with a password. Takes tens of milliseconds.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn password_line(name: &str, password: &[u8]) -> Result<String, String> {
    check_name(name)?;
    if password.is_empty() || password.len() > MAX_PASSWORD_BYTES {
        return Err(format!(
            "a password has 1 to {MAX_PASSWORD_BYTES} bytes; enter another password"
        ));
    }
    let salt = SaltString::generate(&mut OsRng);
    let hash = argon2().hash_password(password, &salt);
    hash.map(|hash| format!("{name}:{hash}")).map_err(|error| format!("cannot hash: {error}"))
}

/// Makes a random token. Returns the token and the line of the users file.
///
/// # Errors
/// A sentence that says what is wrong with the name.
pub fn token_line(name: &str) -> Result<(String, String), String> {
    check_name(name)?;
    let mut random = [0; TOKEN_BYTES];
    OsRng.fill_bytes(&mut random);
    let token = hexadecimal(&random);
    let hash = hexadecimal(&Blake2s256::digest(token.as_bytes()));
    Ok((token, format!("{name}:{TOKEN_MARK}{hash}")))
}

fn check_name(name: &str) -> Result<(), String> {
    let text = || {
        format!(
            "{name:?} is not a valid name; a name has up to {MAX_NAME_BYTES} bytes without colons"
        )
    };
    if is_name(name) { Ok(()) } else { Err(text()) }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_hashes_alone_and_each_proves_its_own_user() {
        let alice = password_line("alice", b"open sesame").expect("a line");
        let (token, machine) = token_line("ci").expect("a line");
        assert!(!machine.contains(&token), "{machine}");
        let book = UserBook::read(&format!("# users\n{alice}\n\n{machine}\n")).expect("sound");
        let (hash, user) = book.hash_of("alice");
        assert_eq!(user.as_deref(), Some("alice"));
        assert!(matches(hash, b"open sesame") && !matches(hash, b"open sesam"));
        assert_eq!(book.with_token(token.as_bytes()).as_deref(), Some("ci"));
        assert_eq!(book.with_token(b"open sesame"), None);
        assert_eq!(book.names().collect::<Vec<_>>(), [("alice", false), ("ci", true)]);
        assert_eq!(format!("{book:?}"), "UserBook(2 users)");
    }

    #[test]
    fn a_name_without_a_password_has_a_hash_of_the_same_cost() {
        let (_, machine) = token_line("ci").expect("a line");
        let book = UserBook::read(&machine).expect("sound");
        for name in ["ci", "nobody"] {
            let (hash, user) = book.hash_of(name);
            assert_eq!((verifier(hash).is_some(), user), (true, None), "{name}");
        }
    }

    #[test]
    fn an_unusable_line_is_named() {
        let (_, token) = token_line("a").expect("a line");
        let twin = token.replacen('a', "b", 1);
        for (content, expected) in [
            ("alice", (1, BadUserLine::NoColon)),
            ("\n:x", (2, BadUserLine::Name)),
            ("alice:secret", (1, BadUserLine::Hash)),
            ("alice:$blake2s$00", (1, BadUserLine::Hash)),
            (&format!("alice:{}", UNKNOWN.replace("t=2", "t=3")), (1, BadUserLine::Hash)),
            (&format!("alice:{}", UNKNOWN.replace("2id", "2i")), (1, BadUserLine::Hash)),
            (&format!("{token}\n{token}"), (2, BadUserLine::Repeated)),
            (&format!("{token}\n{twin}"), (2, BadUserLine::Repeated)),
        ] {
            assert_eq!(UserBook::read(content).err(), Some(expected), "{content}");
        }
        for name in ["a:b", "", " a", "#a", "a\n"] {
            assert!(token_line(name).is_err(), "{name:?}");
        }
        assert!(password_line("a", b"").is_err());
    }

    #[test]
    fn changes_of_users_are_listed() {
        let line = |name: &str| token_line(name).expect("a line").1;
        let (same, old, new) = (line("same"), line("other"), line("other"));
        let old = UserBook::read(&[same.clone(), old, line("gone")].join("\n")).expect("sound");
        let new = UserBook::read(&[new, line("new"), same].join("\n")).expect("sound");
        let expected = [
            ("new", UserChange::Added),
            ("other", UserChange::NewSecret),
            ("gone", UserChange::Removed),
        ];
        assert_eq!(old.changes(&new), expected);
    }
}
