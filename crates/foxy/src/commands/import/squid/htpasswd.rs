//! Reads the users in a file of htpasswd. foxy cannot read the hashes of their passwords.

/// A user, and the name of the function that made the hash of the password.
type HashedUser = (String, &'static str);

/// Beginnings of hashes, with the names of their hash functions.
const FUNCTIONS: [(&str, &str); 7] = [
    ("$2", "bcrypt"),
    ("$apr1$", "apr1"),
    ("$1$", "MD5"),
    ("$5$", "SHA-256"),
    ("$6$", "SHA-512"),
    ("$y$", "yescrypt"),
    ("{SHA}", "SHA-1"),
];

/// Returns the users in files, which are pairs of name and content.
pub fn users(files: &[(String, String)]) -> Vec<HashedUser> {
    let lines = files.iter().flat_map(|(_, content)| content.lines()).map(str::trim);
    let users = lines.filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (name, hash) = line.split_once(':')?;
        let known = FUNCTIONS.iter().find(|(start, _)| hash.starts_with(start));
        Some((name.to_owned(), known.map_or("crypt", |(_, function)| function)))
    });
    users.collect()
}

/// Returns what the operator must do to give foxy the same users.
pub fn steps(file: &str, users: &[HashedUser]) -> Vec<String> {
    if users.is_empty() {
        return vec![format!(
            "make each user with `foxy user add {file} NAME`; foxy needs the passwords, because it \
             does not read the hashes of the original"
        )];
    }
    let step = |(name, function): &HashedUser| {
        format!("foxy cannot use the {function} hash of {name}; type `foxy user add {file} {name}`")
    };
    users.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_step_with_the_command() {
        let content = "# staff\nann:$apr1$x$y\nbob:$2y$05$z\ncy:{SHA}q\nold:ab12\n\nnothing\n";
        let users = users(&[("passwd".into(), content.into())]);
        let names: Vec<String> =
            users.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        assert_eq!(names, ["ann apr1", "bob bcrypt", "cy SHA-1", "old crypt"]);
        let steps = steps("/u", &users);
        assert_eq!(steps.len(), 4);
        assert_eq!(steps[0], "foxy cannot use the apr1 hash of ann; type `foxy user add /u ann`");
    }
}
