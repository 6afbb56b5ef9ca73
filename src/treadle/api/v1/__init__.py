"""The native API, `/v1`: what every face needs that the other protocols do not say."""
