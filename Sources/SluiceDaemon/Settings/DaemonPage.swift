import SluiceCommand

/// The daemon's command line, as it is parsed and as `--help` shows it.
enum DaemonPage {
  static func page() -> CommandPage {
    CommandPage(
      "sluiced", summary: "the Sluice broker: topics as shared, replaying publishers over TCP",
      options: DaemonSettings.all().map(\.option) + [
        CommandOption("version", help: "Print the version."),
        CommandOption("help", help: "Print this."),
      ],
      details: [
        """
        Prints "sluiced listening on ADDR" for each address and then "sluiced ready" on standard output, \
        and logs on standard error. SIGTERM and SIGINT stop it in an orderly way, a second one at once.
        """,
        """
        There is neither TLS nor authentication in this version: whoever reaches an address can read and \
        write every topic. Listen on loopback addresses or Unix sockets only.
        """,
        "An option overrides its environment variable. Sizes are written like 64MiB, times like 30s or 24h.",
      ],
      examples: [
        .init("Start on the usual address, 127.0.0.1:7420.", "sluiced"),
        .init(
          "Any free port, and a Unix socket; the real addresses are printed.",
          "sluiced --listen 127.0.0.1:0 --listen unix:/tmp/sluice.sock"),
        .init(
          "Keep an hour of every topic, at most 1 GiB of each.", "sluiced --replay-age 1h --replay-bytes 1GiB"
        ),
        .init("Take records of up to 16 MiB.", "SLUICED_MAX_RECORD=16MiB sluiced"),
      ])
  }
}
