import SluiceCommand

/// The daemon's command line, for the parser and for `--help`.
enum DaemonPage {
  static func page() -> CommandPage {
    CommandPage(
      "sluiced", summary: "the Sluice broker: topics as shared, replaying publishers over TCP",
      options: [
        CommandOption(
          "config", value: "FILE",
          help: "Read settings from FILE, in TOML; for its format see sluiced --manual=sluiced.toml.",
          environment: Setting.variable(for: "config")),
        CommandOption(
          "check-config", value: "FILE",
          help:
            "Print all mistakes in FILE and in the files that it names, and end: with 0 if there are none, otherwise with 2."
        ),
      ] + DaemonSettings.all().map(\.option) + [
        CommandOption(
          "manual", value: ManualChoice.allCases.map(\.rawValue).joined(separator: "|"),
          bare: ManualChoice.program.rawValue,
          help:
            "Print the manual page of the program, sluiced(8), or of the configuration file, sluiced.toml(5)."
        ),
        CommandOption(
          "completions", value: CompletionScript.Shell.allCases.map(\.rawValue).joined(separator: "|"),
          help: "Print a shell's completion script for sluiced. For sluice, see sluice completions."
        ),
        CommandOption("version", help: "Print the version."),
        CommandOption("help", help: "Print this help."),
      ],
      details: """
        Prints "sluiced listening on ADDR" for each address and then "sluiced ready" on standard output. The log goes to standard error. SIGTERM and SIGINT stop the \
        broker in an orderly way; a second signal stops it at once.

        Without --users, --token-keys and --auth on, clients don't authenticate, and every client may do everything. Such a broker listens only on loopback addresses and \
        Unix sockets, unless --allow-unauthenticated is given. An authenticated client has only the permissions of --permissions or of its token. On SIGHUP the broker \
        reads users, keys and permissions again, and applies them to connected clients as well.

        Addresses behind tls:// use TLS 1.2 or 1.3, others no TLS; there may be several of both. On SIGHUP the certificates are read again, for new connections. With \
        --tls-client-certs, a client's identity comes from its certificate: the first name, mail address or URI of its alternative names, otherwise its common name.

        Topics are in memory, and end with the broker, unless they are created with storage durable. Durable topics are stored in the directory of --data, with their \
        records, cursors and groups. They are available again after the next start, even after a crash. If a crash has lost records, as sync allows, subscribers that \
        had received them get a notice. Only one broker at a time can use a directory, and no other user may read it. When the disk is full, or --storage-limit is \
        reached, publishing to durable topics is paused; everything else continues.

        With --cluster the broker is a node of a cluster. The cluster's engine, three or five servers of NATS JetStream, stores durable topics, and the nodes share the \
        topics: any node serves any topic. The node refuses an engine that may lose acknowledged records: each nats-server needs sync_interval: always. On SIGTERM the \
        node hands its topics over before it ends. See sluice cluster --help.

        If clients authenticate, nodes authenticate to each other by certificates that are valid for servers and clients, and signed by an authority that signs only \
        nodes' certificates: --tls-cert, --cluster-peer-ca, --cluster-peers. A client's permissions are the same at every node. Users and permissions should be the \
        same on all nodes.

        The page at http://127.0.0.1:7421/ shows the broker. /metrics there is for Prometheus, /healthz and /readyz are for service managers, and /api/broker, \
        /api/topics, /api/topics/NAME, /api/topics/NAME/records, /api/connections and /api/events are for programs. If clients must authenticate, visitors must as well; \
        they need the permission admin on > (and subscribe on a topic for its records).

        An option overrides its environment variable, and both override the file of --config. Names of files in it are relative to its directory. On SIGHUP it is read \
        again. Defaults and rules for new topics, users, keys, permissions, certificates and the log change at once. The log names other changed settings, which need a \
        restart. A file with a mistake changes nothing.

        Sizes are written like 64MiB, times like 30s or 24h. Exit codes: 0 after an orderly stop; 2 if the broker can't start, with the reason on standard error.
        """,
      examples: [
        "Start on the usual address, 127.0.0.1:7420.": "sluiced",
        "Listen on any free port, which is printed, and on a Unix socket.":
          "sluiced --listen 127.0.0.1:0 --listen unix:/tmp/sluice.sock",
        "Keep an hour of every topic, at most 1 GiB of each.": "sluiced --replay-age 1h --replay-bytes 1GiB",
        "Store durable topics in at most 50 GiB, and all topics below orders among them.":
          "sluiced --data /var/lib/sluice --storage-limit 50GiB --topic-rule 'orders.> storage=durable'",
        "Start a node of a cluster.":
          "sluiced --listen 10.0.0.11:7420 --allow-unauthenticated --cluster nats://10.0.0.1,10.0.0.2,10.0.0.3 --node n1",
        "Start a node with authentication of clients, nodes and engine.":
          "sluiced --listen tls://n1.example:7420 --tls-cert n1.pem --tls-key n1.key --users users --permissions permissions --cluster tls://e1.example,e2.example,e3.example --cluster-tls-ca engine.pem --cluster-user nodes --cluster-password-file engine-password --node n1 --cluster-peer-ca nodes.pem --cluster-peers n1.example,n2.example,n3.example",
        "Authenticate users with passwords, with permissions in a file.":
          "sluiced --users /etc/sluice/users --permissions /etc/sluice/permissions",
        "Listen with TLS, and without TLS for clients on this machine.":
          "sluiced --listen 127.0.0.1:7420 --listen tls://0.0.0.0:7422 --tls-cert server.pem --tls-key server.key --users users --permissions permissions",
        "Check a configuration file, and start with it.":
          "sluiced --check-config sluiced.toml && sluiced --config sluiced.toml",
        "Accept records of up to 16 MiB.": "SLUICED_MAX_RECORD=16MiB sluiced",
      ])
  }
}

/// The manual pages that the daemon can print.
enum ManualChoice: String, CaseIterable {
  case program = "sluiced"
  case file = "sluiced.toml"

  var text: String {
    switch self {
    case .program:
      ManualPage.render(DaemonPage.page(), section: 8, seeAlso: ["sluiced.toml(5)", "sluice(1)"])
    case .file: ConfigurationManual.render()
    }
  }
}
