//! The table of a database. Its content follows from the number of transactions.

use std::ops::RangeInclusive;

/// Rows of a transaction.
const ROWS: u64 = 3;

/// The transactions of a table, as its only client knows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// Transactions that were sent.
    sent: u64,
    /// Transactions whose commit was acknowledged.
    committed: u64,
    /// Those that were committed since the count was taken.
    counted: u64,
}

impl Table {
    /// The index is not unique: a row that is there twice must be seen, not refused. The statements are those of
    /// SQLite and PostgreSQL.
    pub(super) const MAKE: &str = "begin; create table t (id integer, version integer, body text); \
        create index t_id on t (id); create table last (n integer); insert into last values (0); commit";
    pub(super) const LAST: &str = "select n from last";
    /// A body is a text of eight characters, some times.
    pub(super) const ROWS: &str = "select id, version, length(body), substr(body, 1, 8), \
        length(replace(body, substr(body, 1, 8), '')) from t order by id, version";

    /// Returns the next transaction: new rows, a new version of an old one, and its own number.
    pub(super) fn next(&mut self) -> String {
        self.sent = self.committed + 1;
        let number = self.sent;
        let row = |id: u64| format!("({id}, {number}, '{}')", text(id).repeat(repeats(id)));
        let rows: Vec<_> = ids(number).map(row).collect();
        format!(
            "begin; insert into t values {}; update t set version = {number} where id = {}; update last set n \
             = {number}; commit",
            rows.join(", "),
            changed(number)
        )
    }

    /// Takes in that the last transaction was committed.
    pub(super) fn commit(&mut self) {
        self.committed = self.sent;
        self.counted += 1;
    }

    /// Returns the number of commits since the last call.
    pub(super) fn take_committed(&mut self) -> u64 {
        std::mem::take(&mut self.counted)
    }

    /// Checks rows and the number of the last transaction. Whatever was found has to be there from now on.
    /// Returns the number of rows that had a promise.
    pub(super) fn check(&mut self, last: u64, rows: &[String]) -> Result<u64, String> {
        let Self { sent, committed, .. } = *self;
        if !(committed..=sent).contains(&last) {
            return Err(format!(
                "transaction {last} is the last one; {committed} was committed, and {sent} was sent"
            ));
        }
        let mut versions = vec![0; usize::try_from(last * ROWS + 1).unwrap_or(0)];
        for number in 1..=last {
            for id in ids(number).chain([changed(number)]) {
                versions[usize::try_from(id).unwrap_or(0)] = number;
            }
        }
        let expect = (1..)
            .zip(&versions[1..])
            .map(|(id, version)| format!("{id}|{version}|{}|{}|0", 8 * repeats(id), text(id)));
        let (mut found, mut counted) = (rows.iter(), 0);
        for expect in expect {
            match found.next() {
                Some(row) if *row == expect => counted += 1,
                Some(row) => return Err(format!("row {row}, where {expect} was expected")),
                None => return Err(format!("row {expect} is missing")),
            }
        }
        if let Some(row) = found.next() {
            return Err(format!("row {row}, behind the last one of transaction {last}"));
        }
        let promised = counted.min(committed * ROWS);
        (self.sent, self.committed) = (last, last);
        Ok(promised)
    }
}

/// The rows of a transaction.
fn ids(number: u64) -> RangeInclusive<u64> {
    (number - 1) * ROWS + 1..=number * ROWS
}

/// The row that a transaction changes, which may be its own.
fn changed(number: u64) -> u64 {
    1 + number.wrapping_mul(7919) % (number * ROWS)
}

fn text(id: u64) -> String {
    format!("{id:07x}.")
}

fn repeats(id: u64) -> usize {
    usize::try_from(1 + id * 31 % 200).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows after a number of transactions.
    fn rows(last: u64) -> Vec<String> {
        let mut rows = Vec::new();
        for id in 1..=last * ROWS {
            let changes = |number: &u64| ids(*number).contains(&id) || changed(*number) == id;
            let version = (1..=last).filter(changes).max().unwrap_or(0);
            rows.push(format!("{id}|{version}|{}|{}|0", 8 * repeats(id), text(id)));
        }
        rows
    }

    fn checked(last: u64, rows: &[String]) -> Result<u64, String> {
        // Four are committed, and a fifth was sent.
        Table { sent: 5, committed: 4, counted: 0 }.check(last, rows)
    }

    #[test]
    fn a_commit_is_there_and_one_that_was_not_answered_may_be() {
        assert_eq!(checked(4, &rows(4)), Ok(12));
        assert_eq!(checked(5, &rows(5)), Ok(12));
        assert!(checked(3, &rows(3)).is_err_and(|what| what.contains("4 was committed")));
        assert!(checked(6, &rows(6)).is_err());
    }

    #[test]
    fn each_row_is_there_once_and_whole() {
        let rows = rows(4);
        let without = [&rows[..5], &rows[6..]].concat();
        assert!(checked(4, &without).is_err_and(|what| what.contains("where 6|")));
        assert!(checked(4, &rows[..11]).is_err_and(|what| what.contains("missing")));
        let twice = [&rows[..6], &rows[5..]].concat();
        assert!(checked(4, &twice).is_err());
        let behind = [&rows[..], &["13|5|8|x|0".to_owned()]].concat();
        assert!(checked(4, &behind).is_err_and(|what| what.contains("behind")));
        // A part of the fifth.
        assert!(checked(4, &self::rows(5)).is_err());
    }

    #[test]
    fn what_was_found_has_to_stay() {
        let mut table = Table { sent: 5, committed: 4, counted: 0 };
        assert_eq!(table.check(5, &rows(5)), Ok(12));
        assert!(table.check(4, &rows(4)).is_err());
        assert!(table.next().contains("set n = 6"));
    }
}
