"""The operations of Newton: each is one declared function, from which every interface derives its form."""
