import SluiceCommand

/// The daemon's command line, for the parser and for `--help`.
enum DaemonPage {
  static func page() -> CommandPage {
    CommandPage(
      "sluiced", summary: "the Sluice broker: topics as shared, replaying publishers over TCP",
      options: [
        CommandOption(
          "config", value: "FILE",
          help: "Read settings from FILE, in TOML: see sluiced.toml(5), which --manual=sluiced.toml prints.",
          environment: Setting.variable(for: "config")),
        CommandOption(
          "check-config", value: "FILE",
          help:
            "Say all that is wrong with FILE and the files that it names, and end: with 0, or with 2 if anything is."
        ),
      ] + DaemonSettings.all().map(\.option) + [
        CommandOption(
          "manual", value: ManualChoice.allCases.map(\.rawValue).joined(separator: "|"),
          bare: ManualChoice.program.rawValue,
          help: "Print the manual page of the program, sluiced(8), or of its file, sluiced.toml(5), for man."),
        CommandOption(
          "completions", value: CompletionScript.Shell.allCases.map(\.rawValue).joined(separator: "|"),
          help: "Print what has a shell complete the options of sluiced; those of sluice: sluice completions."
        ),
        CommandOption("version", help: "Print the version."),
        CommandOption("help", help: "Print this."),
      ],
      details: """
        Prints "sluiced listening on ADDR" for each address and then "sluiced ready" on standard output, \
        and logs on standard error. SIGTERM and SIGINT stop it in an orderly way, a second one at once.

        Without --users, --token-keys and --auth on, clients don't authenticate, and every client may do everything: such a broker listens on \
        loopback addresses and Unix sockets only, or with --allow-unauthenticated. An authenticated client may do what --permissions or its \
        token says, and nothing else. On SIGHUP the broker reads users, keys and permissions again, and applies them to connected clients, too.

        An address behind tls:// speaks TLS 1.2 or 1.3, others don't; there may be several of both. SIGHUP has the certificates read again, for new \
        connections. With --tls-client-certs, a client's identity is the one in its certificate: the first name, mail address or URI among its \
        alternative names, else its common name.

        Topics are in memory, and gone when it ends, unless they are created with storage durable: those are kept in the \
        directory of --data, records, cursors and groups, and are there again at the next start, whatever ended it. \
        Subscribers that had received records which a crash lost, as sync allows, are told so. Only one broker at a time has a \
        directory, which no other user may read. When its disk is full, or --storage-limit is reached, publishers of \
        durable topics wait and all other clients go on.

        With --cluster the broker is a node of a cluster. The cluster's engine, three or five servers of NATS JetStream, keeps durable topics, and \
        the nodes share the topics among them: any node serves any topic. The node refuses an engine that may lose what it has acknowledged: each \
        nats-server needs sync_interval: always. SIGTERM has the node hand its topics over before it ends. See sluice cluster --help.

        Where clients authenticate, nodes know each other by certificates for servers and clients, which an authority has signed that signs those of nodes only: \
        --tls-cert, --cluster-peer-ca, --cluster-peers. A client's permissions hold whatever node it is connected to. Users and permissions should be the same on all nodes.

        http://127.0.0.1:7421/ shows the broker to people; /metrics there is for Prometheus, /healthz and /readyz for service managers, \
        /api/broker, /api/topics, /api/topics/NAME, /api/topics/NAME/records, /api/connections and /api/events for programs. \
        Where clients have to authenticate, visitors do, too, and need the right admin on > (and subscribe on a topic for its records).

        An option overrides its environment variable, and both override the file of --config. Names of files in it are relative to where it is. \
        SIGHUP has it read again: what new topics are, users, keys, permissions, certificates and the log change at once, and \
        what needs a restart is said in the log; a file with a mistake in it changes nothing.

        Sizes are written like 64MiB, times like 30s or 24h. Ends with 0 after an orderly stop, and with 2, having said \
        why, when it can't start.
        """,
      examples: [
        "Start on the usual address, 127.0.0.1:7420.": "sluiced",
        "Any free port, and a Unix socket; the real addresses are printed.":
          "sluiced --listen 127.0.0.1:0 --listen unix:/tmp/sluice.sock",
        "Keep an hour of every topic, at most 1 GiB of each.": "sluiced --replay-age 1h --replay-bytes 1GiB",
        "Topics that survive the broker, on at most 50 GiB; those below orders without being asked for.":
          "sluiced --data /var/lib/sluice --storage-limit 50GiB --topic-rule 'orders.> storage=durable'",
        "A node of a cluster.":
          "sluiced --listen 10.0.0.11:7420 --allow-unauthenticated --cluster nats://10.0.0.1,10.0.0.2,10.0.0.3 --node n1",
        "One whose clients, nodes and engine prove themselves.":
          "sluiced --listen tls://n1.example:7420 --tls-cert n1.pem --tls-key n1.key --users users --permissions permissions --cluster tls://e1.example,e2.example,e3.example --cluster-tls-ca engine.pem --cluster-user nodes --cluster-password-file engine-password --node n1 --cluster-peer-ca nodes.pem --cluster-peers n1.example,n2.example,n3.example",
        "Users with passwords, and their permissions in a file.":
          "sluiced --users /etc/sluice/users --permissions /etc/sluice/permissions",
        "With TLS, beside the usual address for this machine's own clients.":
          "sluiced --listen 127.0.0.1:7420 --listen tls://0.0.0.0:7422 --tls-cert server.pem --tls-key server.key --users users --permissions permissions",
        "Everything from a file, looked through before.":
          "sluiced --check-config sluiced.toml && sluiced --config sluiced.toml",
        "Take records of up to 16 MiB.": "SLUICED_MAX_RECORD=16MiB sluiced",
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
