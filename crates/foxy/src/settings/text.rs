//! Parses values of settings in flags and files, and prints them as TOML.

use super::kind::{Kind, Words};
use super::rows::Written;
use super::squid::CacheDir;
use super::store_choice::{self, StoreChoice};
use super::values::{Output, exact, origin, port};
use foxy_base::ByteSize;
use foxy_cli::units::{parse_duration, show_duration};
use foxy_proxy::upstream::{MAX_PARENTS, Parent};
use std::ffi::OsStr;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Default port of DNS servers (RFC 1035 §4.2).
const DNS_PORT: u16 = 53;

/// Parses the texts of a setting, and stores the value in `written`. The error says which values
/// the setting accepts.
pub fn put(kind: &Kind, texts: &[&OsStr], written: &mut Written) -> Result<(), String> {
    match kind {
        Kind::Listen(slot) if texts == [OsStr::new("off")] => *slot(written) = Some(Vec::new()),
        Kind::Listen(slot) => *slot(written) = Some(each(texts, parsed)?),
        Kind::Output(slot) => *slot(written) = Some(output(single(texts)?)),
        Kind::File(slot) | Kind::Folder(slot) => *slot(written) = Some(single(texts)?.into()),
        Kind::Stores(slot) => *slot(written) = Some(stores(texts)?),
        Kind::CacheDirs(slot) => *slot(written) = Some(each(texts, CacheDir::read)?),
        Kind::Size { slot, at_least, at_most } => {
            let size = parsed(one(texts)?)?;
            *slot(written) = Some(bounded(size, *at_least, *at_most, ByteSize::to_string)?);
        }
        Kind::Span { slot, at_least, at_most } => {
            let span = parse_duration(one(texts)?)?;
            let show = |span: &_| show_duration(*span);
            *slot(written) = Some(bounded(span, *at_least, *at_most, show)?);
        }
        Kind::Count { slot, at_least, at_most } => {
            let text = one(texts)?;
            let count = text.parse().map_err(|_| format!("{text:?} is not a whole number"))?;
            *slot(written) = Some(bounded(count, *at_least, *at_most, usize::to_string)?);
        }
        Kind::Choice { slot, words } => *slot(written) = Some(choice(one(texts)?, words)?),
        Kind::Scheme(slot) => *slot(written) = Some(parsed(one(texts)?)?),
        Kind::Policy(slot) => *slot(written) = Some(parsed(one(texts)?)?),
        Kind::Networks(slot) => *slot(written) = Some(each(texts, parsed)?),
        Kind::Hosts(slot) => *slot(written) = Some(each(texts, parsed)?),
        Kind::Files(slot) => *slot(written) = Some(texts.iter().map(PathBuf::from).collect()),
        Kind::Ports(slot) => *slot(written) = Some(each(texts, port)?),
        Kind::NameServers(slot) => *slot(written) = Some(each(texts, name_server)?),
        Kind::Origin(slot) => *slot(written) = Some(origin(one(texts)?)?),
        Kind::Engine(slot) => *slot(written) = Some(parsed(one(texts)?)?),
        Kind::Parents(slot) => *slot(written) = Some(parents(texts)?),
        Kind::NoProxies(slot) => *slot(written) = Some(each(texts, parsed)?),
        Kind::Codings(slot) => *slot(written) = Some(each(texts, parsed)?),
        Kind::MediaTypes(slot) => *slot(written) = Some(each(texts, parsed)?),
        Kind::Text { slot, read, .. } => *slot(written) = Some(read(one(texts)?)?),
        Kind::Texts { slot, read, .. } => *slot(written) = Some(each(texts, read)?),
    }
    Ok(())
}

fn single<'a>(texts: &[&'a OsStr]) -> Result<&'a OsStr, String> {
    match texts {
        [text] => Ok(text),
        _ => Err(format!("takes one value, not {}", texts.len())),
    }
}

fn one<'a>(texts: &[&'a OsStr]) -> Result<&'a str, String> {
    utf8(single(texts)?)
}

fn utf8(text: &OsStr) -> Result<&str, String> {
    text.to_str().ok_or_else(|| format!("{text:?} is not UTF-8"))
}

fn each<T>(texts: &[&OsStr], parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    texts.iter().map(|text| parse(utf8(text)?)).collect()
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn bounded<T: PartialOrd>(
    value: T,
    at_least: T,
    at_most: T,
    show: impl Fn(&T) -> String,
) -> Result<T, String> {
    if value < at_least {
        return Err(format!("{} is too small; give at least {}", show(&value), show(&at_least)));
    }
    if value > at_most {
        return Err(format!("{} is too large; give at most {}", show(&value), show(&at_most)));
    }
    Ok(value)
}

fn name_server(text: &str) -> Result<SocketAddr, String> {
    let alone = |_| text.parse().map(|address: IpAddr| SocketAddr::new(address, DNS_PORT));
    let server = text.parse().or_else(alone).ok().filter(|server| {
        let address = server.ip();
        server.port() != 0 && !address.is_unspecified() && !address.is_multicast()
    });
    server.ok_or_else(|| {
        format!(
            "{text:?} is not the address of a DNS server; write an address such as 192.0.2.53, \
             127.0.0.1:5353 or [::1]:5353"
        )
    })
}

fn output(text: &OsStr) -> Output {
    match text.to_str() {
        Some("off") => Output::Off,
        Some("-") => Output::Standard,
        _ => Output::File(text.into()),
    }
}

fn stores(texts: &[&OsStr]) -> Result<Vec<StoreChoice>, String> {
    if texts.is_empty() {
        return Err(store_choice::NO_FOLDER.into());
    }
    texts.iter().map(|text| StoreChoice::read(text)).collect()
}

fn choice(text: &str, words: Words) -> Result<&'static str, String> {
    words.iter().map(|(word, _)| *word).find(|word| *word == text).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("{text:?} is not one of {}", known.join(", "))
    })
}

/// Parses the URLs of parent proxies. Errors never repeat a URL, because it may contain a password.
fn parents(texts: &[&OsStr]) -> Result<Vec<Parent>, String> {
    match texts {
        [text] if *text == "off" => Ok(Vec::new()),
        _ if texts.iter().any(|text| *text == "off") => {
            Err("`off` permits no URLs beside it; remove `off` or the URLs".into())
        }
        _ if texts.len() > MAX_PARENTS => Err(format!("takes at most {MAX_PARENTS} values")),
        _ => each(texts, parsed),
    }
}

/// Returns the value of a setting in TOML. Returns `None` if the setting is unset.
pub fn show(kind: &Kind, written: &mut Written) -> Option<String> {
    Some(match kind {
        Kind::Listen(slot) => match &slot(written).as_ref()?[..] {
            [] => quoted(&"off"),
            [address] => quoted(address),
            addresses => list(addresses, quoted),
        },
        Kind::Output(slot) => quoted(slot(written).as_ref()?),
        Kind::File(slot) | Kind::Folder(slot) => quoted(&slot(written).as_ref()?.display()),
        Kind::Stores(slot) => list(slot(written).as_ref()?, quoted),
        Kind::CacheDirs(slot) => list(slot(written).as_ref()?, |line| quoted(&line.text)),
        Kind::Size { slot, .. } => quoted(&exact(slot(written).as_ref().copied()?)),
        Kind::Span { slot, .. } => quoted(&show_duration(slot(written).as_ref().copied()?)),
        Kind::Count { slot, .. } => slot(written).as_ref()?.to_string(),
        Kind::Scheme(slot) => quoted(slot(written).as_ref()?),
        Kind::Policy(slot) => quoted(slot(written).as_ref()?),
        Kind::Choice { slot, .. } => quoted(slot(written).as_ref()?),
        Kind::Networks(slot) => list(slot(written).as_ref()?, quoted),
        Kind::NameServers(slot) => list(slot(written).as_ref()?, quoted),
        Kind::Ports(slot) => list(slot(written).as_ref()?, u16::to_string),
        Kind::Hosts(slot) => list(slot(written).as_ref()?, quoted),
        Kind::Files(slot) => list(slot(written).as_ref()?, |path| quoted(&path.display())),
        Kind::Origin(slot) => quoted(slot(written).as_ref()?),
        Kind::Engine(slot) => quoted(slot(written).as_ref()?),
        Kind::Parents(slot) => list(slot(written).as_ref()?, quoted),
        Kind::NoProxies(slot) => list(slot(written).as_ref()?, quoted),
        Kind::Codings(slot) => list(slot(written).as_ref()?, quoted),
        Kind::MediaTypes(slot) => list(slot(written).as_ref()?, quoted),
        Kind::Text { slot, .. } => quoted(slot(written).as_ref()?),
        Kind::Texts { slot, .. } => list(slot(written).as_ref()?, quoted),
    })
}

pub fn quoted(value: &impl Display) -> String {
    toml::Value::from(value.to_string()).to_string()
}

fn list<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
    format!("[{}]", values.iter().map(show).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_stands_alone_in_a_list_of_parents() {
        let (off, url) = (OsStr::new("off"), OsStr::new("http://a.test:3128"));
        assert_eq!(parents(&[off]), Ok(Vec::new()));
        assert!(parents(&[off, url]).is_err());
    }

    #[test]
    fn bounds_are_named() {
        let refused =
            bounded(ByteSize(1), ByteSize(1 << 20), ByteSize(2 << 20), ByteSize::to_string);
        assert_eq!(refused, Err("1 B is too small; give at least 1 MiB".into()));
    }

    #[test]
    fn name_servers_have_port_53_by_default() {
        for (text, expected) in [
            ("192.0.2.53", "192.0.2.53:53"),
            ("127.0.0.1:5353", "127.0.0.1:5353"),
            ("::1", "[::1]:53"),
            ("[::1]:5353", "[::1]:5353"),
        ] {
            assert_eq!(
                name_server(text).map(|server| server.to_string()),
                Ok(expected.into()),
                "{text}"
            );
        }
        for text in ["", "dns.example", "192.0.2", "127.0.0.1:0", "0.0.0.0", "224.0.0.251", "[::1]"]
        {
            let refused = name_server(text).expect_err(text);
            assert!(
                refused.contains("is not the address of a DNS server; write an address such as"),
                "{refused}"
            );
        }
    }
}
