//! Negative values of options.

use std::ffi::OsString;

/// Joins each option with a negative value after it: `--growth -5%` becomes `--growth=-5%`.
///
/// Clap takes `-5%` for an option of its own and says that there is none. Joined, it reaches the
/// parser of the value, whose message says what is allowed.
pub(crate) fn joined(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined = Vec::<OsString>::new();
    let mut takes_options = true;
    for arg in args {
        takes_options &= arg != "--";
        match joined.last_mut() {
            Some(option) if takes_options && is_bare_option(option) && is_negative(&arg) => {
                option.push("=");
                option.push(arg);
            }
            _ => joined.push(arg),
        }
    }
    joined
}

fn is_bare_option(arg: &OsString) -> bool {
    let bytes = arg.as_encoded_bytes();
    bytes.starts_with(b"--") && bytes.len() > 2 && !bytes.contains(&b'=')
}

fn is_negative(arg: &OsString) -> bool {
    matches!(arg.as_encoded_bytes(), [b'-', b'0'..=b'9' | b'.', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_negative_values_after_an_option_are_joined() {
        let joined = |words: &str| joined(words.split(' ').map(OsString::from));
        let words = |words: &str| words.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(joined("weir fit x --growth -5%"), words("weir fit x --growth=-5%"));
        assert_eq!(joined("weir sim --runtime -.5s -v"), words("weir sim --runtime=-.5s -v"));
        for same in [
            "weir volume resize data -5GiB",
            "weir plan --size --region -x",
            "weir plan --growth=5% -5",
            "weir lab run -- --seed -5",
            "weir -- -5",
        ] {
            assert_eq!(joined(same), words(same));
        }
    }
}
