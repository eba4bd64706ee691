//! Variable-length integers (LEB128: seven bits per byte, lowest first, the top bit set if more
//! follow), and checked reads of untrusted bytes.

/// The reason why bytes are invalid.
pub(super) type Wrong = &'static str;

pub(super) fn put(out: &mut Vec<u8>, mut n: u64) {
    loop {
        let [low, ..] = n.to_le_bytes();
        n >>= 7;
        if n == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Writes a zigzag integer, so that small magnitudes of either sign are short: 0, -1, 1, -2 become
/// 0, 1, 2, 3.
pub(super) fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, (n.cast_unsigned() << 1) ^ (n >> 63).cast_unsigned());
}

/// Unread bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Wrong> {
        self.take(1).map(|byte| byte[0])
    }

    pub(super) fn number(&mut self) -> Result<u64, Wrong> {
        let mut n = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err("a number has more than 64 bits")
    }

    pub(super) fn signed(&mut self) -> Result<i64, Wrong> {
        let n = self.number()?;
        Ok((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
    }

    pub(super) fn length(&mut self) -> Result<usize, Wrong> {
        usize::try_from(self.number()?).map_err(|_| "a length is too large")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_their_shortest_encoding() {
        let check = |n: i64, expect: &[u8]| {
            let mut out = Vec::new();
            put_signed(&mut out, n);
            assert_eq!(out, expect, "{n}");
        };
        check(0, &[0]);
        check(-1, &[1]);
        check(63, &[0x7e]);
        check(64, &[0x80, 0x01]);
        assert!(Input(&[0xff; 10]).number().is_err() && Input(&[0x80]).number().is_err());
    }

    proptest! {
        #[test]
        fn every_number_is_read_unchanged(n: u64, signed: i64) {
            let mut out = Vec::new();
            put(&mut out, n);
            put_signed(&mut out, signed);
            let mut input = Input(&out);
            prop_assert_eq!((input.number(), input.signed()), (Ok(n), Ok(signed)));
            prop_assert!(input.is_empty());
        }
    }
}
