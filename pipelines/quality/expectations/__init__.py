"""Great Expectations: everything that touches the library, which is imported at the first suite.

In: rows and their contract. Out: results, and Data Docs pages. Entry class: `suite.ContractSuites`.

Files in reading order: `rules` (the kinds of expectations in our words), `count_sheet` and `engine` (counts that are
computed in another pass), `suite` (run a contract), `data_docs` (pages).
"""
