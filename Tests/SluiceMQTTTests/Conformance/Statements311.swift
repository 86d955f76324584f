/// MQTT 3.1.1, chapters 1 to 3.3.
let statements311Opening = """
  1.5.3-1 | strings are well-formed UTF-8 without surrogates | CodecTests.refuse
  1.5.3-2 | strings have no U+0000 | CodecTests.refuse
  1.5.3-3 | U+FEFF is a character, and stays | CodecTests.byteOrderMark
  2.2.2-1 | reserved flags have their values | CodecTests.refuse, CodecTests.write
  2.2.2-2 | other flags end the connection | CodecTests.refuse, EndTests.malformed
  2.3.1-1 | packets with an identifier have one that isn't 0 | CodecTests.refuse, OutboundTests.qos
  2.3.1-2 | a client's new packets have unused identifiers | | client
  2.3.1-3 | a client sends again with the same identifier | InboundTests.qos2 | client
  2.3.1-4 | so does a server | OutboundTests.resume, OutboundTests.identifiersComeAround
  2.3.1-5 | PUBLISH at QoS 0 has no identifier | CodecTests.read, OutboundTests.qos
  2.3.1-6 | acknowledgements have the identifier of their PUBLISH | InboundTests.qos1, InboundTests.qos2, OutboundTests.qos2
  2.3.1-7 | SUBACK and UNSUBACK have the identifier of their request | SubscribeTests.answers, SubscribeTests.unsubscribe
  3.1.0-1 | the first packet is CONNECT | RefusalTests.otherFirst, CodecTests.opening
  3.1.0-2 | a second CONNECT ends the connection | ConnectTests.second
  3.1.2-1 | another protocol name may end the connection | RefusalTests.otherVersions
  3.1.2-2 | another level is answered with 0x01, and ends the connection | RefusalTests.otherVersions
  3.1.2-3 | the reserved connect flag is 0 | CodecTests.refuse, RefusalTests.malformed
  3.1.2-4 | without clean session a session goes on, and is stored | ConnectTests.sessions, EndTests.expiryOf311, MQTTDoorTests.aSessionThatIsKeptGetsWhatItIsOwed
  3.1.2-5 | messages at QoS 1 and 2 are stored for a session that is away | OutboundTests.commits, EndTests.expiryOf311 | the log has them, and the session's cursors
  3.1.2-6 | a clean session discards the one before, and ends with the connection | ConnectTests.sessions, EndTests.expiryOf311
  3.1.2-8 | the will is published when the connection ends without DISCONNECT | EndTests.malformed, ConnectTests.keepAlive, MQTTDoorTests.aWillIsPublishedUnlessTheClientSaysGoodbye
  3.1.2-9 | a will's fields are there | CodecTests.refuse, CodecTests.read
  3.1.2-10 | the will is removed when it is published or the client disconnects | EndTests.normal, MQTTDoorTests.aWillIsPublishedUnlessTheClientSaysGoodbye, HostileClientTests.willsOfDeadClientsByTheThousandArePublishedAndLeaveNothing
  3.1.2-11 | without a will its flags are 0 and its fields missing | CodecTests.refuse
  3.1.2-12 | without a will none is published | EndTests.takenOver
  3.1.2-13 | without a will its QoS is 0 | CodecTests.refuse
  3.1.2-14 | a will's QoS isn't 3 | CodecTests.refuse
  3.1.2-15 | without a will its retain flag is 0 | CodecTests.refuse
  3.1.2-16 | a will that isn't retained is published as such | EndTests.willMessage
  3.1.2-17 | a retained will is published as such | EndTests.willMessage
  3.1.2-18 | without its flag there is no user name | CodecTests.refuse
  3.1.2-19 | with its flag there is a user name | CodecTests.refuse, CodecTests.read
  3.1.2-20 | without its flag there is no password | CodecTests.refuse
  3.1.2-21 | with its flag there is a password | CodecTests.refuse, CodecTests.read
  3.1.2-22 | without a user name there is no password | CodecTests.refuse
  3.1.2-23 | a client that has nothing to send sends PINGREQ | | client
  3.1.2-24 | one and a half of the keep alive time without a packet ends the connection | ConnectTests.keepAlive
  3.1.3-1 | the payload's fields have their order | CodecTests.read
  3.1.3-2 | the client identifier names the session | EndTests.takenOver, MQTTDoorTests.aSessionThatIsKeptGetsWhatItIsOwed, MQTTDoorTests.aSessionIsTakenOver, MQTTSessionKeyTests.clientIdentifiersAreComparedByBytes
  3.1.3-3 | the client identifier is there, first | CodecTests.read, CodecTests.refuse
  3.1.3-4 | the client identifier is a string | CodecTests.refuse
  3.1.3-5 | identifiers of 1 to 23 letters and digits are allowed | ConnectTests.identifiers
  3.1.3-6 | an empty identifier is replaced by a unique one | ConnectTests.emptyIdentifier, MQTTSessionKeyTests.emptyIdentifiersBecomeUniqueOnes
  3.1.3-7 | a client with an empty identifier asks for a clean session | ConnectTests.emptyIdentifier | client; another is refused
  3.1.3-8 | an empty identifier without a clean session is answered with 0x02 | ConnectTests.emptyIdentifier
  3.1.3-9 | an identifier that is refused is answered with 0x02 | RefusalTests.refused, ConnectTests.emptyIdentifier
  3.1.3-10 | the will's topic is a string | CodecTests.refuse
  3.1.3-11 | the user name is a string | CodecTests.refuse
  3.1.4-1 | a CONNECT that isn't in order ends the connection without CONNACK | RefusalTests.malformed
  3.1.4-2 | the connection that a client has had is ended | EndTests.takenOver
  3.1.4-3 | clean session is processed | ConnectTests.sessions
  3.1.4-4 | CONNACK accepts the client | ConnectTests.accept
  3.1.4-5 | nothing is processed behind a CONNECT that is refused | RefusalTests.earlyRefused
  3.2.0-1 | CONNACK is the first packet | ConnectTests.connackFirst
  3.2.2-1 | a clean session has no session present | ConnectTests.sessions
  3.2.2-2 | session present says that there is one | ConnectTests.sessions
  3.2.2-3 | or that there is none | ConnectTests.sessions
  3.2.2-4 | a refusal has no session present | RefusalTests.refused
  3.2.2-5 | a refusal ends the connection | RefusalTests.refused, ConnectTests.emptyIdentifier, MQTTRefusalTests.aClientTooManyIsTold
  3.2.2-6 | where no return code fits the connection ends without CONNACK | RefusalTests.malformed
  3.3.1-1 | DUP is set for a message that is sent again | OutboundTests.resume
  3.3.1-2 | DUP isn't set at QoS 0 | CodecTests.refuse, OutboundTests.qos
  3.3.1-3 | DUP of an incoming message isn't passed on | OutboundTests.qos, InboundTests.duplicates
  3.3.1-4 | QoS 3 ends the connection | CodecTests.refuse
  3.3.1-5 | a retained message is stored with its QoS | InboundTests.retained, MQTTDoorTests.retainedMessagesComeToLateSubscribers, MQTTRetainedTests.manyMessagesComeBack
  3.3.1-6 | a new subscription gets the retained messages | SubscribeTests.retainHandling
  3.3.1-7 | a retained message at QoS 0 replaces the topic's | InboundTests.retained, MQTTDoorTests.retainedMessagesComeToLateSubscribers
  3.3.1-8 | RETAIN is set for retained messages of a new subscription | MessageTests.retain
  3.3.1-9 | RETAIN isn't set for others | MessageTests.retain
  3.3.1-10 | an empty retained message removes the topic's, and is published | InboundTests.retained, MQTTRetainedTests.aMessageWithoutAPayloadRemovesIt
  3.3.1-11 | an empty message isn't retained | InboundTests.retained, MQTTRetainedTests.aMessageWithoutAPayloadRemovesIt
  3.3.1-12 | a message that isn't retained changes no retained message | InboundTests.qos0
  3.3.2-1 | the topic name is first, and a string | CodecTests.read, CodecTests.refuse
  3.3.2-2 | a topic name has no wildcards | CodecTests.refuse
  3.3.2-3 | a message's topic matches the filter of the subscription | TopicTests.model, TopicTests.matching
  3.3.4-1 | a message is answered as its QoS says | InboundTests.qos0, InboundTests.qos1, InboundTests.qos2
  3.3.5-1 | the highest QoS of overlapping subscriptions is respected | MessageTests.overlapping
  3.3.5-2 | a message that isn't authorized is acknowledged, or ends the connection | InboundTests.notAppended, InboundTests.inexpressible
  """

/// MQTT 3.1.1, the rest.
let statements311Rest = """
  3.6.1-1 | PUBREL's reserved flags have their values | CodecTests.refuse, CodecTests.write
  3.8.1-1 | SUBSCRIBE's reserved flags have their values | CodecTests.refuse
  3.8.3-1 | topic filters are strings | CodecTests.refuse
  3.8.3-2 | filters with wildcards are refused where they aren't supported | | they are supported
  3.8.3-3 | SUBSCRIBE has a topic filter | CodecTests.refuse
  3.8.4-1 | SUBSCRIBE is answered | SubscribeTests.answers
  3.8.4-2 | SUBACK has the identifier of SUBSCRIBE | SubscribeTests.answers
  3.8.4-3 | the same filter replaces its subscription, which isn't interrupted | SubscribeTests.replace
  3.8.4-4 | several filters are as several SUBSCRIBEs with one answer | SubscribeTests.answers
  3.8.4-5 | SUBACK has the granted QoS or a failure for each filter | SubscribeTests.answers, MQTTAccessTests.aFilterIsGrantedWhereATopicOfItMayBeRead
  3.8.4-6 | a message has the lower QoS of its publication and its subscription | OutboundTests.qos
  3.9.3-1 | SUBACK's return codes have the order of the filters | SubscribeTests.answers
  3.9.3-2 | SUBACK has no other return codes than 0, 1, 2 and 0x80 | SubscribeTests.refused, SubscribeTests.answers
  3.10.1-1 | UNSUBSCRIBE's reserved flags have their values | CodecTests.refuse
  3.10.3-1 | topic filters are strings | CodecTests.refuse
  3.10.3-2 | UNSUBSCRIBE has a topic filter | CodecTests.refuse
  3.10.4-1 | filters are compared character by character | SubscribeTests.unsubscribe, SubscribeTests.bytes
  3.10.4-2 | nothing new is delivered | OutboundTests.late
  3.10.4-3 | what was begun at QoS 1 and 2 is completed | SubscribeTests.unsubscribeUnderWay
  3.10.4-4 | UNSUBSCRIBE is answered, with its identifier | SubscribeTests.unsubscribe
  3.10.4-5 | it is answered where there was no subscription, too | SubscribeTests.unsubscribe
  3.10.4-6 | several filters are as several UNSUBSCRIBEs with one answer | SubscribeTests.unsubscribe
  3.12.4-1 | PINGREQ is answered | ConnectTests.keepAlive
  3.14.1-1 | DISCONNECT's reserved flags are 0 | CodecTests.refuse
  3.14.4-1 | a client closes the connection behind DISCONNECT | EndTests.normal | client; the server closes it, too
  3.14.4-2 | a client sends nothing behind DISCONNECT | EndTests.behind | client; what comes is dropped
  3.14.4-3 | DISCONNECT discards the will | EndTests.normal
  4.1.0-1 | a session is stored as long as it lasts | InboundTests.qos2Survives, StateTests.roundTrip
  4.1.0-2 | a session lasts as long as its connection | InboundTests.qos2Survives
  4.3.1-1 | QoS 0 is sent without DUP | OutboundTests.qos
  4.3.2-1 | the sender of QoS 1 | OutboundTests.identifiersComeAround, OutboundTests.demand, OutboundTests.fetches
  4.3.2-2 | the receiver of QoS 1 | InboundTests.qos1, InboundTests.duplicates
  4.3.3-1 | the sender of QoS 2 | OutboundTests.qos2, OutboundTests.resume
  4.3.3-2 | the receiver of QoS 2 | InboundTests.qos2
  4.4.0-1 | what is unacknowledged is sent again on the next connection | OutboundTests.resume, OutboundTests.fetches
  4.5.0-1 | a message is added to the sessions with matching subscriptions | OutboundTests.commits | the log has it, and each session's cursor
  4.5.0-2 | a client acknowledges what it receives | | client
  4.6.0-1 | a client sends messages again in their order | OutboundTests.resume | client; the server does, too
  4.6.0-2 | a client sends PUBACKs in the order of the messages | InboundTests.qos1 | client; the server does for the messages of a topic
  4.6.0-3 | a client sends PUBRECs in the order of the messages | InboundTests.qos2Survives | client; the server does for the messages of a topic
  4.6.0-4 | a client sends PUBRELs in the order of the PUBRECs | OutboundTests.resume | client; the server does, too
  4.6.0-5 | every topic is ordered | OutboundTests.resume | the log has one order
  4.6.0-6 | messages come in the order in which a client has sent them | InboundTests.qos0, OutboundTests.resume
  4.7.1-1 | topic names have no wildcards | CodecTests.refuse
  4.7.1-2 | # is alone in the last level | TopicTests.refusedFilters, SubscribeTests.refused
  4.7.1-3 | + is alone in its level | TopicTests.refusedFilters
  4.7.2-1 | wildcards in the first level don't match topics with $ | TopicTests.matching
  4.7.3-1 | names and filters aren't empty | TopicTests.refusedNames, TopicTests.refusedFilters, CodecTests.refuse
  4.7.3-2 | names and filters have no U+0000 | CodecTests.refuse
  4.7.3-3 | names and filters have at most 65,535 bytes | TopicTests.refusedNames | the broker's names have 255
  4.7.3-4 | nothing is normalised | TopicTests.matching, SubscribeTests.bytes, MQTTSessionKeyTests.clientIdentifiersAreComparedByBytes, TopicSpellingTests.namesThatAreNotComposedAreNoOtherNameAtAnyDoor
  4.8.0-1 | a violation ends the connection | EndTests.malformed, ConnectTests.serverPackets
  4.8.0-2 | a transient error ends the connection | InboundTests.notAppended
  6.0.0-1 | WebSocket messages are binary | WebSocketSessionTests.noText
  6.0.0-2 | packets may be cut anywhere by WebSocket frames | CodecTests.cuts, WebSocketDecoderTests.cuts
  6.0.0-3 | a client offers the subprotocol mqtt | WebSocketUpgradeTests.subprotocols | client; one that doesn't is refused
  6.0.0-4 | the subprotocol is mqtt | WebSocketUpgradeTests.agrees
  7.0.0-1 | a server that connects to others is a client, too | | the broker speaks its own protocol to others
  7.0.0-2 | no extension is needed | ConnectTests.accept, InboundTests.qos1, OutboundTests.qos
  7.1.1-1 | a server's transport is an ordered, lossless stream | CodecTests.cuts | the broker's listeners are TCP, TLS and WebSockets
  7.1.2-1 | a client's transport is an ordered, lossless stream | | client
  """
