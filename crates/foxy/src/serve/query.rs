//! Queries of the admin server's targets: names and values, percent-encoded.

/// The names and values of a query, in order.
pub fn pairs(query: &str) -> Result<Vec<(String, String)>, String> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').unwrap_or((part, ""))).map(pair).collect()
}

fn pair((name, value): (&str, &str)) -> Result<(String, String), String> {
    Ok((name.to_owned(), decoded(value)?))
}

/// A value without percent-encoding.
fn decoded(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} has a % without two hexadecimal digits; write %25 for a %");
    let mut bytes = Vec::new();
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or("").as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(wrong)?;
        let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| hexadecimal).ok_or_else(wrong)?;
        bytes.push(byte);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not UTF-8"))
}

/// A value with percent-encoding, for a query.
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let one =
        |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_as_it_was() {
        for text in ["http://a.test/x?y=1&z=%20#", "é, ü", ""] {
            assert_eq!(decoded(&encoded(text)).as_deref(), Ok(text));
        }
    }
}
