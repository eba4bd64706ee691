//! The names under which AWS attaches volumes.

/// Returns the device name of the volume with a number, or `None` beyond the last name: first
/// `/dev/sdf` to `/dev/sdz`, then `/dev/xvdba` to `/dev/xvdcx`. AWS recommends these names for
/// attached volumes of Linux instances. The operating system may use others.
pub(crate) fn device_name(number: u32) -> Option<String> {
    let singles = ('f'..='z').map(|letter| format!("/dev/sd{letter}"));
    let pairs = ('b'..='c')
        .flat_map(|first| ('a'..='x').map(move |letter| format!("/dev/xvd{first}{letter}")));
    singles.chain(pairs).nth(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_end_at_xvdcx() {
        let check = |number, expect: Option<&str>| {
            assert_eq!(device_name(number).as_deref(), expect);
        };
        check(0, Some("/dev/sdf"));
        check(20, Some("/dev/sdz"));
        check(21, Some("/dev/xvdba"));
        check(68, Some("/dev/xvdcx"));
        check(69, None);
    }
}
