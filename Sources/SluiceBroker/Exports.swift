// A program with a broker in it reads the figures of topics, too: metrics, traffic and the store's state.
@_exported import SluiceTopics
