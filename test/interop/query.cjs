// Runs the queries given as arguments in one database, and prints the rows of each as a line of JSON.
const { DuckDBInstance } = require('@duckdb/node-api')

async function main() {
  const database = await DuckDBInstance.create(':memory:')
  const connection = await database.connect()
  for (const query of process.argv.slice(1)) {
    const rows = await connection.runAndReadAll(query)
    console.log(JSON.stringify(rows.getRowsJson()))
  }
}

main().catch((e) => { console.error(e); process.exit(1) })
