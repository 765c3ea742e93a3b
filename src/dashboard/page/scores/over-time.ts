/** The averages of scores over time: a query that follows the range of a board. */
export const SCORES_OVER_TIME = `SELECT toStartOfInterval(created_at, toIntervalSecond({step:UInt32})) AS time, name, avg(value) AS mean
FROM scores
WHERE value IS NOT NULL AND created_at >= {from:DateTime64(3)} AND created_at < {to:DateTime64(3)}
GROUP BY time, name
ORDER BY time`
