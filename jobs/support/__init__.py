"""What commands share: nothing here is a command.

`options` (command-line options), `session` (the Spark session), `java` (its JVM), `workload` (its jobs), `signals`
(Ctrl-C and SIGTERM), `terminal` (safe output), `logs` (logging and progress), `published` (rows of published tables),
`labelling`, `conclusions`, `explain_lists` and `truth` (what commands print), `grids` (tables that fit the terminal),
`verdict_formats` (Markdown and JUnit XML), `reference` (the generated documentation).
"""
