// SPDX-License-Identifier: Apache-2.0

// Package query asks the status database, and answers over HTTP.
//
//	?since=24h&sort=-gain ─▶ Parse ─▶ store.Question ─▶ store ─▶ Answer ─▶ JSON, CSV, text
//	SQL ────────────────────────────────────────────────▲
//	--hub URL ─▶ Client ── GET /api/v1/query/TOPIC, POST /api/v1/sql ──▶ Handler
//
// One form of a question for flags, for the API and for the page's links. An answer has a row
// as an object, so that jq and Grafana's Infinity data source take it as it is. What is
// unknown is null. Names are bytes: one that is no text is written as schema.Name does.
//
// Access says who may ask. Not for: what the questions mean (store), or the page.
package query
