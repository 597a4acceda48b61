//! A generated password: made from the operating system's randomness, and never printed.

use data_encoding::BASE32_NOPAD;

/// How many random bytes a password has: 160 bits, and in Base32 whole characters without padding.
const BYTES: usize = 20;

/// A password. It has neither `Debug` nor `Serialize`, so that it can get into no log and no status.
pub struct Password(String);

impl Password {
    /// A new one: 32 letters and digits, which need no quoting in a URL, a shell or a file of settings.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(BASE32_NOPAD.encode(&bytes).to_lowercase()))
    }

    /// The text, for the one place that writes it into the Secret.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The same every time, for comparisons with a golden file.
    #[cfg(test)]
    pub fn fixed() -> Self {
        Self("abcdefghijklmnopqrstuvwxyz234567".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn passwords_are_long_plain_and_never_the_same() {
        let passwords: BTreeSet<String> =
            (0..100).map(|_| Password::generate().unwrap().expose().to_owned()).collect();
        assert_eq!(passwords.len(), 100);
        for password in passwords {
            assert_eq!(password.len(), 32, "{password}");
            assert!(
                password.bytes().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b)),
                "{password}"
            );
        }
    }
}
