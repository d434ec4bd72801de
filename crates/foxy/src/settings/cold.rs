//! Reads and checks the settings of the cold tier.

use super::complaint::Complaint;
use super::rows::{Settings, Written};

/// Checks the URL of a bucket.
#[cfg(feature = "cold")]
pub fn store_url(text: &str) -> Result<String, String> {
    match foxy_fleet::cold::remote::StoreAddress::read(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("{text:?}: write s3://BUCKET or s3://BUCKET/PREFIX")),
    }
}

/// Without the feature, foxy refuses every cold tier later.
#[cfg(not(feature = "cold"))]
pub fn store_url(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Checks the URL of a server.
pub fn endpoint(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match host.map(|host| host.trim_end_matches('/')) {
        Some(host) if !host.is_empty() && !host.contains(['/', '@', '?', ' ']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err(format!("{text:?}: write https://HOST or https://HOST:PORT")),
    }
}

/// Checks a word.
pub fn word(text: &str) -> Result<String, String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_sound = !text.is_empty() && text.bytes().all(is_word);
    is_sound.then(|| text.to_owned()).ok_or_else(|| format!("{text:?}: write a region's name"))
}

/// Checks a price.
pub fn price(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(text.to_owned()),
        _ => Err(format!("{text:?}: write a price such as 0.005")),
    }
}

/// Returns a complaint if the settings make no cold tier.
pub fn complaint(settings: &Settings, written: &Written) -> Option<Complaint> {
    let cold = &settings.cold;
    let others = [
        ("cold.endpoint", cold.endpoint.is_some()),
        ("cold.credentials-file", cold.credentials_file.is_some()),
    ];
    let given = others.into_iter().find(|(_, is_given)| *is_given);
    let (key, message) = match (&cold.url, given) {
        (None, None) => return None,
        (None, Some((key, _))) => (key, format!("`{key}` does nothing without `cold.url`")),
        (Some(_), _) if !cfg!(feature = "cold") => (
            "cold.url",
            "this foxy was built without the feature `cold`; build it with this feature".into(),
        ),
        (Some(_), _) if settings.disk.store.is_empty() => {
            ("cold.url", "`cold.url` needs a store; give `store`".into())
        }
        (Some(_), _) => return None,
    };
    Some(Complaint { message, source: written.sources.get(key).cloned() })
}
